#include "plan/settings.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "plan/plan.hpp"
#include "plan/values.hpp"

namespace numcheck::plan {
namespace {

// Characters of environment values and tags, which become part of identifiers, file names and command lines.
constexpr std::string_view kWordCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:+-";
constexpr std::size_t kMaxTag = 64;
constexpr std::size_t kMaxTags = 64;
constexpr std::size_t kMaxVariableValue = 64;

bool is_word(std::string_view text) noexcept {
  return text.find_first_not_of(kWordCharacters) == std::string_view::npos;
}

std::optional<std::string> decode_variable_value(const Member& variable, Reporter& reporter) {
  const Node& value = variable.value;
  const std::string what = quote(variable.key);
  if (!value.is(Node::Kind::text)) {
    const bool number = value.is(Node::Kind::number);
    wrong_kind(value, what, "a string or null", reporter,
               number ? fmt::format("write \"{}\"; null means unset", value.text.substr(0, 20)) : "null means unset");
    return {};
  }
  if (value.text.size() > kMaxVariableValue || !is_word(value.text)) {
    reporter.error(value, fmt::format("{} cannot be {}", what, quote(value.text)),
                   {"a value has up to 64 letters, digits and \"_.:+-\"", {}});
    return {};
  }
  // Measured: only "0" and "1" change anything; "00", "false" or "2" count as unset.
  if (variable.key == "NVIDIA_TF32_OVERRIDE" && value.text != "0" && value.text != "1") {
    reporter.warning(value, fmt::format("NVIDIA_TF32_OVERRIDE={} has no effect: it counts as unset", quote(value.text)),
                     {"\"0\" forbids TF32, \"1\" forces it, null unsets the variable", {}});
  }
  return value.text;
}

void decode_allclose(const Node& node, ToleranceSpec& tolerance, Reporter& reporter) {
  static constexpr std::array<std::string_view, 2> kKeys = {"rtol", "atol"};
  if (!node.is(Node::Kind::object)) {
    wrong_kind(node, "\"allclose\"", "an object", reporter, R"({"rtol": 1e-5, "atol": 1e-8})");
    return;
  }
  check_keys(node, kKeys, "allclose", reporter);
  const Node* rtol = node.find("rtol");
  const Node* atol = node.find("atol");
  if (rtol == nullptr || atol == nullptr) {
    reporter.error(node, fmt::format("\"allclose\" has no \"{}\"", rtol == nullptr ? "rtol" : "atol"),
                   {"both are needed: |got - expected| <= atol + rtol |expected|", {}});
    return;
  }
  tolerance.allclose_rtol = decode_number(*rtol, "\"rtol\"", 0, kMaxToleranceLimit, reporter);
  tolerance.allclose_atol = decode_number(*atol, "\"atol\"", 0, kMaxToleranceLimit, reporter);
}

}  // namespace

const op::Mode* decode_mode(const Node& node, const op::Op* op, Reporter& reporter) {
  std::vector<std::string_view> names;
  for (const op::Mode& mode : op::all_modes()) {
    if (op == nullptr || std::ranges::find(op->modes, mode.name) != op->modes.end()) {
      names.push_back(mode.name);
    }
  }
  const std::string lead = op == nullptr ? "modes are:" : fmt::format("{} has:", op->name);
  if (!node.is(Node::Kind::text)) {
    wrong_kind(node, "\"mode\"", "a string or a list of strings", reporter, suggestion("", names, lead));
    return nullptr;
  }
  if (std::ranges::find(names, node.text) != names.end()) {
    return op::find_mode(node.text);
  }
  const bool exists = op::find_mode(node.text) != nullptr;
  reporter.error(
      node, exists ? fmt::format("{} has no mode {}", op->name, quote(node.text)) : "unknown mode " + quote(node.text),
      {suggestion(exists ? "" : node.text, names, lead), {}});
  return nullptr;
}

std::string computed_input_text(const op::Op& op, std::string_view port) {
  return fmt::format("{} computes its input {} itself, so it has no distribution: leave it out", op.name, quote(port));
}

std::optional<Environment> decode_environment(const Node& node, Reporter& reporter) {
  if (!node.is(Node::Kind::object)) {
    wrong_kind(node, "\"environment\"", "an object or a list of objects", reporter,
               R"([{"NVIDIA_TF32_OVERRIDE": null}, {"NVIDIA_TF32_OVERRIDE": "0"}])");
    return {};
  }
  std::vector<std::string_view> names;
  for (const EnvironmentVariable& variable : settable_variables()) {
    names.push_back(variable.name);
  }
  Environment environment;
  bool complete = true;
  for (const Member& member : node.members) {
    if (member.key == "$comment") {
      continue;
    }
    if (std::ranges::find(names, member.key) == names.end()) {
      reporter.error(member, fmt::format("{} is not a variable that a plan may set", quote(member.key)),
                     {suggestion(member.key, names, "a plan may set:"), {}});
      complete = false;
      continue;
    }
    std::optional<std::string> value;
    if (!member.value.is(Node::Kind::null)) {
      value = decode_variable_value(member, reporter);
      complete = complete && value.has_value();
    }
    environment.emplace(member.key, std::move(value));
  }
  return complete ? std::optional(std::move(environment)) : std::nullopt;
}

std::optional<AlgorithmSpec> decode_algorithms(const Node& node, Reporter& reporter) {
  static constexpr std::array<std::string_view, 2> kNames = {"heuristic", "all"};
  if (node.is(Node::Kind::text)) {
    if (std::ranges::find(kNames, node.text) == kNames.end()) {
      reporter.error(node, "unknown choice of algorithms " + quote(node.text),
                     {suggestion(node.text, kNames, "algorithms are {\"top\": N} or one of:"), {}});
      return {};
    }
    return AlgorithmSpec{node.text == "all" ? AlgorithmSpec::Kind::all : AlgorithmSpec::Kind::heuristic, 1};
  }
  if (!node.is(Node::Kind::object)) {
    wrong_kind(node, "\"algorithms\"", R"("heuristic", "all" or {"top": N})", reporter);
    return {};
  }
  static constexpr std::array<std::string_view, 1> kKeys = {"top"};
  check_keys(node, kKeys, "algorithms", reporter);
  const Node* top = node.find("top");
  if (top == nullptr) {
    reporter.error(node, "\"algorithms\" has no \"top\"", {R"("heuristic", "all" or {"top": N})", {}});
    return {};
  }
  const auto count = decode_unsigned(*top, "\"top\"", 1, kMaxTopAlgorithms, reporter);
  return count ? std::optional(AlgorithmSpec{AlgorithmSpec::Kind::top, static_cast<std::int64_t>(*count)})
               : std::nullopt;
}

namespace {

/// Names are checked where the op is known.
void decode_statistics(const Node& node, ToleranceSpec& tolerance, Reporter& reporter) {
  static constexpr std::array<std::string_view, 2> kKeys = {"least", "most"};
  if (!node.is(Node::Kind::object)) {
    wrong_kind(node, "\"statistics\"", "an object", reporter,
               R"({"sqnr": {"least": 25}, "underflow": {"most": 0.01}})");
    return;
  }
  for (const Member& member : node.members) {
    if (member.key == "$comment") {
      continue;
    }
    const Node& limits = member.value;
    if (!limits.is(Node::Kind::object)) {
      wrong_kind(limits, quote(member.key), "an object", reporter, R"({"least": 25}, {"most": 0.01} or both)");
      continue;
    }
    const Node* least = limits.find("least");
    const Node* most = limits.find("most");
    if (least == nullptr && most == nullptr) {
      reporter.error(limits, fmt::format("{} needs a limit", quote(member.key)),
                     {R"({"least": 25}, {"most": 0.01} or both)", {}});
      continue;
    }
    check_keys(limits, kKeys, "limits of a statistic", reporter);
    const auto number = [&](const Node* limit, std::string_view name) {
      return limit == nullptr ? std::optional<double>()
                              : decode_number(*limit, name, -kMaxToleranceLimit, kMaxToleranceLimit, reporter);
    };
    const std::size_t errors = reporter.error_count();
    const StatisticLimit limit = {std::string(member.key), number(least, "\"least\""), number(most, "\"most\"")};
    if (reporter.error_count() == errors && limit.least && limit.most && *limit.least > *limit.most) {
      reporter.error(limits, fmt::format("{} cannot be at least {:g} and at most {:g}", quote(member.key), *limit.least,
                                         *limit.most));
    }
    tolerance.statistics.push_back(limit);
  }
}

}  // namespace

std::optional<ToleranceSpec> decode_tolerance(const Node& node, Reporter& reporter) {
  static constexpr std::array<std::string_view, 5> kKeys = {"allclose", "ulp", "rel_l2", "min_judged", "statistics"};
  ToleranceSpec tolerance;
  if (node.is(Node::Kind::text) && node.text == "default") {
    return tolerance;
  }
  if (!node.is(Node::Kind::object)) {
    wrong_kind(node, "\"tolerance\"", "\"default\" or an object", reporter,
               R"({"allclose": {"rtol": 1e-2, "atol": 1e-3}, "ulp": 2, "rel_l2": 1e-2})");
    return {};
  }
  const std::size_t errors = reporter.error_count();
  check_keys(node, kKeys, "tolerance", reporter);
  if (const Node* allclose = node.find("allclose")) {
    decode_allclose(*allclose, tolerance, reporter);
  }
  if (const Node* ulp = node.find("ulp")) {
    tolerance.max_ulp = decode_number(*ulp, "\"ulp\"", 0, kMaxToleranceLimit, reporter);
  }
  if (const Node* rel_l2 = node.find("rel_l2")) {
    tolerance.rel_l2 = decode_number(*rel_l2, "\"rel_l2\"", 0, kMaxToleranceLimit, reporter);
  }
  if (const Node* min_judged = node.find("min_judged")) {
    tolerance.min_judged = decode_number(*min_judged, "\"min_judged\"", 0, 1, reporter);
  }
  if (const Node* statistics = node.find("statistics")) {
    decode_statistics(*statistics, tolerance, reporter);
  }
  return reporter.error_count() == errors ? std::optional(tolerance) : std::nullopt;
}

std::optional<std::vector<std::string>> decode_tags(const Node& node, Reporter& reporter) {
  if (!node.is(Node::Kind::array)) {
    wrong_kind(node, "\"tags\"", "a list of words", reporter);
    return {};
  }
  if (node.items.size() > kMaxTags) {
    reporter.error(node, fmt::format("a case has at most {} tags", kMaxTags));
    return {};
  }
  std::vector<std::string> tags;
  for (const Node& item : node.items) {
    if (!item.is(Node::Kind::text) || item.text.empty() || item.text.size() > kMaxTag || !is_word(item.text)) {
      reporter.error(item, "a tag is a word of up to 64 letters, digits and \"_.:+-\"");
      return {};
    }
    if (std::ranges::find(tags, item.text) == tags.end()) {
      tags.push_back(item.text);
    }
  }
  return tags;
}

}  // namespace numcheck::plan
