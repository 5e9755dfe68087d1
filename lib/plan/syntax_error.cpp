// Puts into words what is wrong with text that is not JSON: the parser only says where it gave up.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "plan/document.hpp"

namespace numcheck::plan {
namespace {

using Expecting = SyntaxContext::Expecting;

constexpr const char* kCommentHint = "comments are // to the end of the line, or /* ... */";

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
bool is_word(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

std::size_t digits_end(std::string_view text, std::size_t at) noexcept {
  while (at < text.size() && is_digit(text[at])) {
    ++at;
  }
  return at;
}

/// Value of the four hexadecimal digits of "\uXXXX" at the start of `text`, or nothing.
std::optional<unsigned> unicode_escape(std::string_view text) noexcept {
  unsigned value = 0;
  if (text.size() < 6 || !text.starts_with("\\u")) {
    return {};
  }
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, value, 16);
  return error == std::errc() && end == text.data() + 6 ? std::optional(value) : std::nullopt;
}

/// Bytes of the escape sequence at the start of `text`, or 0 if it is illegal.
std::size_t escape_length(std::string_view text) noexcept {
  if (text.size() >= 2 && std::string_view("\"\\/bfnrt").find(text[1]) != std::string_view::npos) {
    return 2;
  }
  const std::optional<unsigned> unit = unicode_escape(text);
  if (!unit || (*unit >= 0xDC00 && *unit <= 0xDFFF)) {
    return 0;
  }
  if (*unit < 0xD800 || *unit > 0xDFFF) {
    return 6;
  }
  const std::optional<unsigned> low = unicode_escape(text.substr(6));
  return low && *low >= 0xDC00 && *low <= 0xDFFF ? 12 : 0;
}

class Explainer {
 public:
  Explainer(const Sources& sources, std::uint32_t file, const SyntaxContext& context, Reporter& reporter)
      : source_(sources[file]), text_(source_.text), file_(file), context_(context), reporter_(reporter) {}

  void explain() {
    const std::size_t at = skip_blank(text_, context_.resume);
    switch (context_.expecting) {
      case Expecting::document:
        return at >= text_.size() ? say(at, 1, "the file is empty", "a plan is an object: {\"version\": 1, ...}")
                                  : bad_value(at);
      case Expecting::end:
        return bad_comment(at) ? void() : say(at, 1, "unexpected text after the end of the plan");
      case Expecting::value_or_end:
        return bad_value(at);
      case Expecting::key_or_end:
        return bad_key(at);
      case Expecting::colon:
        if (at < text_.size() && text_[at] == ':') {
          return bad_value(skip_blank(text_, at + 1));
        }
        return at_end(at) || bad_comment(at) ? void() : say(at, 1, "expected ':' after the key");
      case Expecting::comma_or_end:
        return bad_separator(at);
    }
  }

 private:
  void say(std::size_t at, std::size_t length, std::string text, std::string hint = {}, std::string note = {}) {
    reporter_.error(Location{file_, std::min(at, text_.size()), std::max<std::size_t>(1, length)}, std::move(text),
                    {std::move(hint), std::move(note)});
  }

  [[nodiscard]] std::string container() const { return context_.container_is_array ? "list" : "object"; }

  bool at_end(std::size_t at) {
    if (at < text_.size()) {
      return false;
    }
    std::string note;
    if (context_.container != nullptr) {
      const LineColumn opened = line_column(text_, context_.container->begin);
      note = fmt::format("the {} was opened at {}:{}:{}", container(), source_.name, opened.line, opened.column);
    }
    const std::size_t last = text_.find_last_not_of(" \t\r\n");
    say(last == std::string_view::npos ? 0 : last, 1, "the file ends too early", {}, std::move(note));
    return true;
  }

  bool bad_comment(std::size_t at) {
    if (at >= text_.size() || text_[at] != '/') {
      return false;
    }
    const bool open = text_.substr(at, 2) == "/*";
    say(at, open ? 2 : 1, open ? "this comment is never closed" : "unexpected '/'", open ? "" : kCommentHint);
    return true;
  }

  void unexpected(std::size_t at, const char* expected) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text_, at));
    std::string shown = quote(text_.substr(at, length));
    say(at, 1, fmt::format("unexpected {}, expected {}", shown, expected), text_[at] == '#' ? kCommentHint : "");
  }

  void bad_separator(std::size_t at) {
    if (at_end(at) || bad_comment(at)) {
      return;
    }
    const char closing = context_.container_is_array ? ']' : '}';
    if (text_[at] == ',') {
      const std::size_t next = skip_blank(text_, at + 1);
      if (next < text_.size() && text_[next] == closing) {
        return say(at, 1, "trailing comma", "JSON has no comma after the last element");
      }
      return context_.container_is_array ? bad_value(next) : bad_key(next);
    }
    if (text_[at] == ']' || text_[at] == '}') {
      const LineColumn opened = line_column(text_, context_.container->begin);
      return say(at, 1, fmt::format("'{}' does not close the {}", text_[at], container()), {},
                 fmt::format("the {} was opened at {}:{}:{}", container(), source_.name, opened.line, opened.column));
    }
    say(at, 1, fmt::format("expected ',' or '{}'", closing));
  }

  void bad_key(std::size_t at) {
    if (at_end(at) || bad_comment(at)) {
      return;
    }
    if (text_[at] == '"') {
      return bad_string(at);
    }
    if (is_word(text_[at]) || text_[at] == '\'') {
      return say(at, token_end(text_, at + 1) - at, "keys need double quotes");
    }
    unexpected(at, "a key");
  }

  void bad_value(std::size_t at) {
    if (at_end(at) || bad_comment(at)) {
      return;
    }
    const char c = text_[at];
    if (c == '"') {
      return bad_string(at);
    }
    if (c == '\'') {
      return say(at, 1, "strings need double quotes");
    }
    if (is_digit(c) || c == '-' || c == '+' || c == '.') {
      return bad_number(at);
    }
    if (is_word(c)) {
      return bad_word(at);
    }
    unexpected(at, "a value");
  }

  void bad_number(std::size_t at) {
    const std::size_t end = token_end(text_, at + 1);
    const std::string_view token = text_.substr(at, end - at);
    const std::size_t sign = std::min(token.find_first_not_of("+-"), token.size());
    if (sign < token.size() && (token[sign] == 'i' || token[sign] == 'I' || token[sign] == 'n' || token[sign] == 'N')) {
      return not_a_number(at, token);
    }
    if (is_json_number(token)) {
      return say(at, token.size(), fmt::format("{} is beyond the range of a double", quote(token)));
    }
    say(at, token.size(), fmt::format("{} is not a number", quote(token)), std::string(kNumberHint));
  }

  void not_a_number(std::size_t at, std::string_view token) {
    say(at, token.size(), fmt::format("{} is not JSON", quote(token)),
        R"(where a number may be infinite or NaN, write "inf", "-inf" or "nan" as a string)");
  }

  void bad_word(std::size_t at) {
    const std::string_view word = text_.substr(at, token_end(text_, at) - at);
    static constexpr std::array<std::string_view, 6> kNotNumbers = {"NaN", "nan", "Infinity", "infinity", "inf", "Inf"};
    if (std::ranges::find(kNotNumbers, word) != kNotNumbers.end()) {
      return not_a_number(at, word);
    }
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOthers = {
        {{"True", "true"}, {"False", "false"}, {"None", "null"}, {"TRUE", "true"}, {"FALSE", "false"}}};
    const auto* other = std::ranges::find(kOthers, word, &std::pair<std::string_view, std::string_view>::first);
    say(at, word.size(), "unexpected word " + quote(word),
        other != kOthers.end() ? fmt::format("did you mean {}?", other->second) : "strings need double quotes");
  }

  void bad_string(std::size_t at) {
    for (std::size_t i = at + 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '"') {
        break;
      }
      if (c == '\n' || c == '\r') {
        return say(at, i - at, "this string is never closed");
      }
      if (c == '\t') {
        return say(i, 1, "a tab inside a string", "write \\t");
      }
      if (c == '\\') {
        const std::size_t length = escape_length(text_.substr(i));
        if (length == 0) {
          const bool hexadecimal = text_.substr(i, 2) == "\\u";
          return say(i, hexadecimal ? 6 : 2, "bad escape sequence in a string",
                     "allowed are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX (surrogates in pairs)");
        }
        i += length - 1;
      }
    }
    say(at, text_.size() - at, "this string is never closed");
  }

  const Source& source_;
  std::string_view text_;
  std::uint32_t file_;
  const SyntaxContext& context_;
  Reporter& reporter_;
};

}  // namespace

bool is_json_number(std::string_view token) noexcept {
  std::size_t at = token.starts_with('-') ? 1 : 0;
  std::size_t end = digits_end(token, at);
  if (end == at || (token[at] == '0' && end > at + 1)) {
    return false;
  }
  if (end < token.size() && token[end] == '.') {
    at = end + 1;
    end = digits_end(token, at);
    if (end == at) {
      return false;
    }
  }
  if (end < token.size() && (token[end] == 'e' || token[end] == 'E')) {
    at = end + 1;
    if (at < token.size() && (token[at] == '+' || token[at] == '-')) {
      ++at;
    }
    end = digits_end(token, at);
    if (end == at) {
      return false;
    }
  }
  return end == token.size();
}

std::size_t skip_blank(std::string_view text, std::size_t offset) noexcept {
  if (offset == 0 && text.starts_with("\xEF\xBB\xBF")) {
    offset = 3;
  }
  while (offset < text.size()) {
    if (std::string_view(" \t\r\n").find(text[offset]) != std::string_view::npos) {
      ++offset;
    } else if (text.substr(offset, 2) == "//") {
      offset = std::min(text.find_first_of("\r\n", offset), text.size());
    } else if (text.substr(offset, 2) == "/*" && text.find("*/", offset + 2) != std::string_view::npos) {
      offset = text.find("*/", offset + 2) + 2;
    } else {
      break;
    }
  }
  return offset;
}

std::size_t token_end(std::string_view text, std::size_t offset) noexcept {
  while (offset < text.size() &&
         (is_word(text[offset]) || text[offset] == '+' || text[offset] == '-' || text[offset] == '.')) {
    ++offset;
  }
  return offset;
}

void report_syntax_error(const Sources& sources, std::uint32_t file, const SyntaxContext& context, Reporter& reporter) {
  Explainer(sources, file, context, reporter).explain();
}

}  // namespace numcheck::plan
