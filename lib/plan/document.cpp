#include "plan/document.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace numcheck::plan {
namespace {

/// Input iterator that counts the bytes the parser has consumed: nlohmann_json before 3.12 keeps no positions.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* consumed) : at_(at), consumed_(consumed) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*consumed_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  std::size_t* consumed_;
};

/// Builds the tree from the parser's events. An open container is the last element of its parent, which cannot grow
/// meanwhile, so the pointers in `open_` stay valid.
class TreeBuilder {
 public:
  using json = nlohmann::json;

  TreeBuilder(const Sources& sources, std::uint32_t file, const std::size_t& consumed, std::size_t& values,
              Reporter& reporter)
      : sources_(sources),
        text_(sources[file].text),
        file_(file),
        consumed_(consumed),
        values_(values),
        reporter_(reporter) {}

  bool null() { return add(scalar(Node::Kind::null, consumed_)); }
  bool boolean(bool value) {
    Node node = scalar(Node::Kind::boolean, consumed_);
    node.truth = value;
    return add(std::move(node));
  }
  bool number_integer(json::number_integer_t) { return number(); }
  bool number_unsigned(json::number_unsigned_t) { return number(); }
  bool number_float(json::number_float_t, const std::string&) { return number(); }
  bool string(std::string& value) {
    Node node = scalar(Node::Kind::text, consumed_);
    node.text = std::move(value);
    return add(std::move(node));
  }
  bool binary(json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Node::Kind::object); }
  bool key(std::string& value) {
    if (++values_ > kMaxValues) {
      return too_many();
    }
    key_ = std::move(value);
    key_where_ = next_token(consumed_);
    last_end_ = consumed_;
    after_key_ = true;
    return true;
  }
  bool end_object() {
    check_duplicates(*open_.back());
    return close();
  }
  bool start_array(std::size_t) { return open(Node::Kind::array); }
  bool end_array() { return close(); }
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception&) {
    report_syntax_error(sources_, file_, context(), reporter_);
    return false;
  }

  [[nodiscard]] Node take() { return std::move(root_); }

 private:
  [[nodiscard]] Location next_token(std::size_t end) const {
    std::size_t begin = skip_blank(text_, last_end_);
    while (begin < end && (text_[begin] == ',' || text_[begin] == ':')) {
      begin = skip_blank(text_, begin + 1);
    }
    return {file_, begin, std::max<std::size_t>(1, end - begin)};
  }

  [[nodiscard]] Node scalar(Node::Kind kind, std::size_t end) const {
    Node node;
    node.kind = kind;
    node.where = next_token(end);
    return node;
  }

  bool number() {
    Node node = scalar(Node::Kind::number, consumed_);
    const std::size_t end = token_end(text_, node.where.begin);  // `consumed_` includes a byte of look-ahead
    node.where.length = end - node.where.begin;
    node.text = text_.substr(node.where.begin, node.where.length);
    if (!is_json_number(node.text)) {
      reporter_.error(node.where, fmt::format("{} is not a number", quote(node.text)), {std::string(kNumberHint), {}});
      return false;
    }
    return add(std::move(node));
  }

  bool too_many() {
    reporter_.error(next_token(consumed_), fmt::format("the plan has more than {} keys and values", kMaxValues),
                    {"write long lists as {\"from\": ..., \"to\": ..., \"step\": ...}", {}});
    return false;
  }

  Node* attach(Node node) {
    after_key_ = false;
    last_end_ = node.where.begin + node.where.length;
    if (open_.empty()) {
      root_ = std::move(node);
      done_ = true;
      return &root_;
    }
    Node& parent = *open_.back();
    if (parent.kind == Node::Kind::array) {
      parent.items.push_back(std::move(node));
      return &parent.items.back();
    }
    parent.members.push_back({std::move(key_), key_where_, std::move(node)});
    return &parent.members.back().value;
  }

  bool add(Node node) {
    if (++values_ > kMaxValues) {
      return too_many();
    }
    attach(std::move(node));
    return true;
  }

  bool open(Node::Kind kind) {
    Node node = scalar(kind, consumed_);
    if (open_.size() >= kMaxDepth) {
      reporter_.error(node.where, fmt::format("lists and objects are nested more than {} deep", kMaxDepth));
      return false;
    }
    if (++values_ > kMaxValues) {
      return too_many();
    }
    open_.push_back(attach(std::move(node)));
    return true;
  }

  bool close() {
    open_.pop_back();
    last_end_ = consumed_;
    return true;
  }

  void check_duplicates(Node& object) {
    std::vector<const Member*> sorted;
    sorted.reserve(object.members.size());
    for (const Member& member : object.members) {
      sorted.push_back(&member);
    }
    std::ranges::stable_sort(sorted, {}, [](const Member* m) -> const std::string& { return m->key; });
    const Member* first = nullptr;
    for (const Member* member : sorted) {
      if (first == nullptr || member->key != first->key) {
        first = member;
        continue;
      }
      const LineColumn at = line_column(text_, first->key_where.begin);
      reporter_.error(member->key_where, "duplicate key " + quote(member->key),
                      {{}, fmt::format("first given at {}:{}:{}", sources_[file_].name, at.line, at.column)});
    }
  }

  [[nodiscard]] SyntaxContext context() const {
    SyntaxContext context;
    context.resume = last_end_;
    if (open_.empty()) {
      context.expecting = done_ ? SyntaxContext::Expecting::end : SyntaxContext::Expecting::document;
      return context;
    }
    const Node& container = *open_.back();
    const bool empty = container.items.empty() && container.members.empty();
    context.container = &container.where;
    context.container_is_array = container.kind == Node::Kind::array;
    if (after_key_) {
      context.expecting = SyntaxContext::Expecting::colon;
    } else if (!empty) {
      context.expecting = SyntaxContext::Expecting::comma_or_end;
    } else {
      context.expecting =
          context.container_is_array ? SyntaxContext::Expecting::value_or_end : SyntaxContext::Expecting::key_or_end;
    }
    return context;
  }

  const Sources& sources_;
  std::string_view text_;
  std::uint32_t file_;
  const std::size_t& consumed_;
  std::size_t& values_;
  Reporter& reporter_;
  Node root_;
  std::vector<Node*> open_;
  std::string key_;
  Location key_where_;
  std::size_t last_end_ = 0;
  bool after_key_ = false;
  bool done_ = false;
};

/// Finds bytes that the parser would take for the end of the text (NUL) or never look at (in comments).
bool check_text(std::string_view text, std::uint32_t file, Reporter& reporter) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    reporter.error(Location{file, 0, 1}, "the file is UTF-16", {"save it as UTF-8", {}});
    return false;
  }
  const auto* control = std::ranges::find_if(text, [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
  });
  const auto at_control = static_cast<std::size_t>(control - text.begin());
  const std::size_t at = std::min(find_invalid_utf8(text.substr(0, at_control)), at_control);
  if (at < text.size()) {
    reporter.error(
        Location{file, at, 1},
        fmt::format("byte 0x{:02x} is not text", static_cast<unsigned>(static_cast<unsigned char>(text[at]))),
        {"a plan is JSON in UTF-8; is this a plan?", {}});
    return false;
  }
  return true;
}

}  // namespace

Node parse_document(const Sources& sources, std::uint32_t file, std::size_t& values, Reporter& reporter) {
  const std::string_view text = sources[file].text;
  if (!check_text(text, file, reporter)) {
    return {};
  }
  std::size_t consumed = 0;
  TreeBuilder builder(sources, file, consumed, values, reporter);
  const CountingIterator first(text.data(), &consumed);
  const CountingIterator last(text.data() + text.size(), &consumed);
  nlohmann::json::sax_parse(first, last, &builder, nlohmann::json::input_format_t::json, true, true);
  return builder.take();
}

}  // namespace numcheck::plan
