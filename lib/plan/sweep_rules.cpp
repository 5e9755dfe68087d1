#include "plan/sweep_rules.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace numcheck::plan {
namespace {

/// A shorter text would be found in messages of other errors as well.
constexpr std::size_t kShortestError = 8;

bool decode_zip_group(CaseSpec& spec, const Node& node, Reporter& reporter) {
  if (!node.is(Node::Kind::array) || node.items.size() < 2) {
    reporter.error(node, "a zip group must be a list of two or more axes", {R"("zip": [["m", "n"]])", {}});
    return false;
  }
  const std::vector<AxisInfo> axes = axes_of(spec);
  std::vector<std::string_view> names;
  for (const AxisInfo& axis : axes) {
    names.push_back(axis.name);
  }
  std::vector<std::string> group;
  const AxisInfo* first = nullptr;
  for (const Node& item : node.items) {
    const auto axis = std::ranges::find(axes, item.text, &AxisInfo::name);
    if (!item.is(Node::Kind::text)) {
      wrong_kind(item, "an axis of a zip group", "a string", reporter);
      return false;
    }
    if (axis == axes.end()) {
      reporter.error(item, fmt::format("{} is not an axis", quote(item.text)),
                     {suggestion(item.text, names, "axes are:"), {}});
      return false;
    }
    const auto uses = [&](const std::vector<std::string>& g) { return std::ranges::find(g, item.text) != g.end(); };
    if (uses(group) || std::ranges::any_of(spec.zip, uses)) {
      reporter.error(item, fmt::format("{} is zipped twice", quote(item.text)));
      return false;
    }
    first = first == nullptr ? &*axis : first;
    if (axis->count != first->count) {
      reporter.error(item, fmt::format("zipped axes differ in length: \"{}\" has {}, \"{}\" has {}", first->name,
                                       first->count, axis->name, axis->count));
      return false;
    }
    group.push_back(item.text);
  }
  spec.zip.push_back(std::move(group));
  return true;
}

bool is_match_list(const Node& node, std::string_view what, Reporter& reporter) {
  if (!node.is(Node::Kind::array)) {
    wrong_kind(node, what, "a list of objects", reporter);
    return false;
  }
  if (count_values(node) > kMaxMatchValues) {
    reporter.error(node, fmt::format("{} has more than {} values", what, kMaxMatchValues));
    return false;
  }
  return true;
}

/// The value of an optional member that must be a text of at least `shortest` characters; empty without one.
std::string decode_text(const Node& node, std::string_view key, std::size_t shortest, std::string_view what,
                        std::string_view example, Reporter& reporter) {
  const Node* text = node.find(key);
  if (text == nullptr) {
    return {};
  }
  if (!text->is(Node::Kind::text) || text->text.size() < shortest ||
      text->text.find_first_not_of(" \t\n") == std::string::npos) {
    reporter.error(*text, fmt::format("\"{}\" must be {}", key, what), {fmt::format("such as \"{}\"", example), {}});
  }
  return text->text;
}

/// Decodes the texts of a known failure: why it is known, which cause or which error, until when, where to read more.
void decode_prose(const Node& node, XFail& xfail, Reporter& reporter) {
  const Node* reason = node.find("reason");
  if (reason == nullptr) {
    reporter.error(node, "this known failure has no \"reason\"",
                   {"say why the failure is known: an issue, a version", {}});
  } else if (!reason->is(Node::Kind::text) || reason->text.find_first_not_of(" \t\n") == std::string::npos) {
    reporter.error(*reason, "\"reason\" must be a text that says why the failure is known");
  } else {
    xfail.reason = reason->text;
  }
  xfail.cause = decode_text(node, "cause", 1, "a text as reports name causes", "the last 1 of k is missing", reporter);
  xfail.error = decode_text(
      node, "error", kShortestError,
      fmt::format("a text of {} or more characters that the message of the error or crash contains", kShortestError),
      "CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED", reporter);
  xfail.link = decode_text(node, "link", 1, "an address where one can read more", "https://...", reporter);
  if (const Node* error = node.find("error"); error != nullptr && node.find("cause") != nullptr) {
    reporter.error(*error, "a known failure has a \"cause\" or an \"error\", not both",
                   {"write two entries: one for wrong outputs, one for the error", {}});
  }
  if (const Node* expires = node.find("expires")) {
    if (!expires->is(Node::Kind::text) || !is_iso_date(expires->text)) {
      reporter.error(*expires, "\"expires\" must be a date such as \"2026-01-31\"");
    }
    xfail.expires = expires->text;
  }
}

bool decode_xfail_entry(CaseSpec& spec, const Node& node, const Vocabulary& vocabulary, Reporter& reporter) {
  static constexpr std::array<std::string_view, 6> kKeys = {"match", "cause", "error", "reason", "link", "expires"};
  if (!node.is(Node::Kind::object)) {
    wrong_kind(node, "an xfail entry", "an object", reporter, R"({"match": {"k": 1}, "reason": "..."})");
    return false;
  }
  const std::size_t errors = reporter.error_count();
  check_keys(node, kKeys, "an xfail entry", reporter);
  std::optional<XFailRule> rule = decode_known_failure(node, *spec.op, vocabulary, reporter);
  if (rule) {
    spec.xfail.push_back(std::move(*rule));
  }
  return reporter.error_count() == errors;
}

/// The day, for a calendar date written like 2026-01-31.
std::optional<std::chrono::sys_days> parse_date(std::string_view text) noexcept {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') {
    return std::nullopt;
  }
  const auto number = [&](std::size_t begin, std::size_t length) {
    int value = -1;
    const char* last = text.data() + begin + length;
    const auto [end, error] = std::from_chars(text.data() + begin, last, value);
    return error == std::errc() && end == last ? value : -1;
  };
  const int year = number(0, 4);
  const int month = number(5, 2);
  const int day = number(8, 2);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  return year >= 0 && month >= 0 && day >= 0 && date.ok() ? std::optional(std::chrono::sys_days(date)) : std::nullopt;
}

}  // namespace

bool is_iso_date(std::string_view text) noexcept {
  return parse_date(text).has_value();
}

void warn_of_expiry(const XFailRule& rule, std::string_view today, Reporter& reporter) {
  constexpr std::chrono::days kSoon(30);
  const auto now = parse_date(today), last = parse_date(rule.xfail.expires);
  if (!now || !last || *last - *now > kSoon) {
    return;
  }
  const Node* expires = rule.match.node->find("expires");
  const Node& where = expires == nullptr ? *rule.match.node : *expires;
  if (*last < *now) {
    reporter.warning(where,
                     fmt::format("this known failure expired on {}: it excuses nothing any more", rule.xfail.expires),
                     {"delete the entry if the failure is gone; otherwise give it a later date", {}});
  } else {
    const auto days = (*last - *now).count();
    reporter.warning(where,
                     fmt::format("this known failure expires {}", days == 0   ? "at the end of today"
                                                                  : days == 1 ? "tomorrow"
                                                                              : fmt::format("in {} days", days)),
                     {"then the failure fails the run; delete the entry, or give it a later date", {}});
  }
}

bool decode_zip(CaseSpec& spec, const Node* node, Reporter& reporter) {
  if (node == nullptr) {
    return true;
  }
  if (!node->is(Node::Kind::array)) {
    wrong_kind(*node, "\"zip\"", "a list of groups", reporter, R"("zip": [["m", "n"]])");
    return false;
  }
  bool complete = true;
  for (const Node& group : node->items) {
    complete = decode_zip_group(spec, group, reporter) && complete;
  }
  return complete;
}

bool decode_exclude(CaseSpec& spec, const Node* node, const Vocabulary& vocabulary, Reporter& reporter) {
  if (node == nullptr) {
    return true;
  }
  if (!is_match_list(*node, "\"exclude\"", reporter)) {
    return false;
  }
  bool complete = true;
  for (const Node& item : node->items) {
    std::optional<Match> match = decode_match(item, *spec.op, MatchUse::exclude, vocabulary, reporter);
    if (match && match->conditions.empty()) {
      reporter.error(item, "this \"exclude\" entry would remove every case", {"name at least one field", {}});
      match.reset();
    }
    complete = complete && match.has_value();
    if (match) {
      spec.exclude.push_back(std::move(*match));
    }
  }
  return complete;
}

std::optional<XFailRule> decode_known_failure(const Node& node, const op::Op& op, const Vocabulary& vocabulary,
                                              Reporter& reporter) {
  const std::size_t errors = reporter.error_count();
  XFailRule rule;
  rule.match.node = &node;
  rule.xfail.place = reporter.place_of(node);
  if (const Node* match = node.find("match")) {
    if (std::optional<Match> decoded = decode_match(*match, op, MatchUse::xfail, vocabulary, reporter)) {
      if (decoded->conditions.empty() && decoded->device == DeviceCondition{}) {
        reporter.error(*match, "\"match\" is empty: it would excuse every case",
                       {"name the cases that are known to fail, such as {\"mode\": \"bf16\"}", {}});
      }
      rule.match.conditions = std::move(decoded->conditions);
      rule.xfail.where = std::move(decoded->device);
    }
  }
  decode_prose(node, rule.xfail, reporter);
  return reporter.error_count() == errors ? std::optional(std::move(rule)) : std::nullopt;
}

bool decode_xfail(CaseSpec& spec, const Node* node, const Vocabulary& vocabulary, Reporter& reporter) {
  if (node == nullptr) {
    return true;
  }
  if (!is_match_list(*node, "\"xfail\"", reporter)) {
    return false;
  }
  bool complete = true;
  for (const Node& item : node->items) {
    complete = decode_xfail_entry(spec, item, vocabulary, reporter) && complete;
  }
  return complete;
}

}  // namespace numcheck::plan
