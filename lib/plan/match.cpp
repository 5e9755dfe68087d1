#include "plan/match.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "plan/backend_name.hpp"
#include "plan/decode_device.hpp"
#include "plan/settings.hpp"
#include "plan/values.hpp"

namespace numcheck::plan {
namespace {

constexpr std::string_view kArchitecture = "architecture";
constexpr std::string_view kLibraries = "libraries";

std::optional<op::Value> decode_distribution_name(const Node& node, Reporter& reporter) {
  std::vector<std::string_view> names;
  for (const data::DistributionInfo& info : data::all_distributions()) {
    names.push_back(info.name);
  }
  if (!node.is(Node::Kind::text)) {
    wrong_kind(node, "\"inputs\" of a match", "the name of a distribution", reporter);
    return {};
  }
  if (std::ranges::find(names, node.text) == names.end()) {
    reporter.error(node, "unknown distribution " + quote(node.text),
                   {suggestion(node.text, names, "distributions are:"), {}});
    return {};
  }
  return op::Value(node.text);
}

double decode_end(const Node& node, std::string_view what, const op::Field& field, Reporter& reporter) {
  return field.kind == op::FieldKind::integer
             ? static_cast<double>(decode_integer(node, what, field.minimum, field.maximum, reporter).value_or(0))
             : decode_number(node, what, field.minimum, field.maximum, reporter).value_or(0);
}

/// {"from": 513}: both ends are inclusive, a missing one is open.
std::optional<Interval> decode_range(const Node& node, const op::Field& field, Reporter& reporter) {
  static constexpr std::array<std::string_view, 2> kKeys = {"from", "to"};
  const std::string what = "a range of " + quote(field.name);
  const std::size_t errors = reporter.error_count();
  check_keys(node, kKeys, what, reporter);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Interval range{-kInfinity, kInfinity};
  for (const auto& [key, end] : {std::pair("from", &range.from), std::pair("to", &range.to)}) {
    if (const Node* given = node.find(key)) {
      *end = decode_end(*given, fmt::format("{} of {}", quote(key), what), field, reporter);
    }
  }
  if (reporter.error_count() != errors) {
    return {};
  }
  if (node.find("from") == nullptr && node.find("to") == nullptr) {
    reporter.error(node, what + " has neither end", {R"(write {"from": 513}, or {"from": 513, "to": 1024})", {}});
    return {};
  }
  if (range.from > range.to) {
    reporter.error(node, fmt::format("{} from {} to {} is empty", what, range.from, range.to));
    return {};
  }
  return range;
}

/// One value of a condition; false after a report.
bool add_value(Condition& condition, const Node& node, const op::Op& op, const Vocabulary& vocabulary,
               Reporter& reporter) {
  std::optional<op::Value> value;
  switch (condition.kind) {
    case Condition::Kind::parameter: {
      const op::Field& field = op.fields()[condition.field];
      const bool is_number = field.kind == op::FieldKind::integer || field.kind == op::FieldKind::number;
      if (is_number && node.is(Node::Kind::object)) {
        const std::optional<Interval> range = decode_range(node, field, reporter);
        if (range) {
          condition.ranges.push_back(*range);
        }
        return range.has_value();
      }
      value = decode_scalar(node, field, reporter);
      break;
    }
    case Condition::Kind::mode:
      if (const op::Mode* mode = decode_mode(node, &op, reporter)) {
        value = op::Value(std::string(mode->name));
      }
      break;
    case Condition::Kind::backend:
      if (std::optional<std::string> backend = decode_backend(node, vocabulary, reporter)) {
        value = op::Value(std::move(*backend));
      }
      break;
    case Condition::Kind::inputs:
      value = decode_distribution_name(node, reporter);
      break;
    case Condition::Kind::environment: {
      std::optional<Environment> environment = decode_environment(node, reporter);
      if (environment) {
        condition.environments.push_back(std::move(*environment));
      }
      return environment.has_value();
    }
  }
  if (value) {
    condition.values.push_back(std::move(*value));
  }
  return value.has_value();
}

bool is_subset(const Environment& part, const Environment& whole) {
  return std::ranges::all_of(part, [&](const auto& variable) {
    const auto found = whole.find(variable.first);
    return found != whole.end() && found->second == variable.second;
  });
}

bool holds(const Condition& condition, const Case& c) {
  const auto is_one_of = [&](const auto& name) {
    return std::ranges::any_of(condition.values,
                               [&](const op::Value& v) { return std::get<core::InternedString>(v) == name; });
  };
  switch (condition.kind) {
    case Condition::Kind::parameter: {
      const op::Value& value = c.params[condition.field];
      const auto is_within = [&value](const Interval& range) {
        const auto* integer = std::get_if<std::int64_t>(&value);
        const double number = integer != nullptr ? static_cast<double>(*integer) : std::get<double>(value);
        return range.from <= number && number <= range.to;
      };
      return std::ranges::find(condition.values, value) != condition.values.end() ||
             std::ranges::any_of(condition.ranges, is_within);
    }
    case Condition::Kind::mode:
      return is_one_of(c.mode->name);
    case Condition::Kind::backend:
      return is_one_of(c.backend);
    case Condition::Kind::inputs:
      return is_one_of(c.inputs.common.name);
    case Condition::Kind::environment:
      return std::ranges::any_of(condition.environments,
                                 [&](const Environment& e) { return is_subset(e, c.environment); });
  }
  return false;
}

/// The condition that a key stands for, or nothing if it names no field.
std::optional<Condition> condition_of(std::string_view key, const op::Op& op) {
  Condition condition;
  if (key == "mode") {
    condition.kind = Condition::Kind::mode;
  } else if (key == "backend") {
    condition.kind = Condition::Kind::backend;
  } else if (key == "inputs") {
    condition.kind = Condition::Kind::inputs;
  } else if (key == "environment") {
    condition.kind = Condition::Kind::environment;
  } else if (const std::optional<std::size_t> field = op::field_index(op, key)) {
    condition.field = *field;
  } else {
    return {};
  }
  return condition;
}

/// Decodes the fields that depend on the device; false if the key is not one of them.
bool decode_device_field(Match& match, const Member& member, MatchUse use, const Vocabulary& vocabulary,
                         Reporter& reporter) {
  if (member.key != kArchitecture && member.key != kLibraries) {
    return false;
  }
  if (use == MatchUse::exclude) {
    reporter.error(member, fmt::format("{} is not known when cases are excluded", quote(member.key)),
                   {"only \"xfail\" entries can depend on the device", {}});
  } else if (member.key == kArchitecture) {
    decode_architectures(member.value, match.device, reporter);
  } else {
    decode_libraries(member.value, match.device, vocabulary, reporter);
  }
  return true;
}

std::vector<std::string_view> field_names(const op::Op& op, MatchUse use) {
  std::vector<std::string_view> names = {"mode", "backend", "inputs", "environment"};
  if (use == MatchUse::xfail) {
    names.insert(names.end(), {kArchitecture, kLibraries});
  }
  for (const op::Field& field : op.fields()) {
    names.push_back(field.name);
  }
  return names;
}

}  // namespace

std::vector<const Node*> elements(const Node& node, std::string_view what, Reporter& reporter) {
  if (!node.is(Node::Kind::array)) {
    return {&node};
  }
  if (node.items.empty()) {
    reporter.error(node, fmt::format("{} is an empty list", what), {"a list is an axis; it needs values", {}});
  }
  std::vector<const Node*> all;
  all.reserve(node.items.size());
  for (const Node& item : node.items) {
    all.push_back(&item);
  }
  return all;
}

std::optional<std::string> decode_backend(const Node& node, const Vocabulary& vocabulary, Reporter& reporter) {
  std::vector<std::string_view> names = vocabulary.backends;
  names.push_back(kAutoBackend);
  if (!node.is(Node::Kind::text)) {
    wrong_kind(node, "\"backend\"", "a string or a list of strings", reporter, suggestion("", names, "backends are:"));
    return {};
  }
  if (std::ranges::find(names, node.text) == names.end()) {
    reporter.error(node, "unknown backend " + quote(node.text), {suggestion(node.text, names, "backends are:"), {}});
    return {};
  }
  return node.text;
}

std::optional<Match> decode_match(const Node& node, const op::Op& op, MatchUse use, const Vocabulary& vocabulary,
                                  Reporter& reporter) {
  if (!node.is(Node::Kind::object)) {
    wrong_kind(node, "a match", "an object", reporter, R"({"mode": "bf16", "k": [1, 3]})");
    return {};
  }
  Match match;
  match.node = &node;
  const std::size_t errors = reporter.error_count();
  bool complete = true;
  for (const Member& member : node.members) {
    if (member.key == "$comment" || decode_device_field(match, member, use, vocabulary, reporter)) {
      continue;
    }
    std::optional<Condition> condition = condition_of(member.key, op);
    if (!condition) {
      reporter.error(member, fmt::format("{} is not a field of a {} case", quote(member.key), op.name),
                     {suggestion(member.key, field_names(op, use), "fields are:"), {}});
      complete = false;
      continue;
    }
    for (const Node* element : elements(member.value, quote(member.key), reporter)) {
      complete = add_value(*condition, *element, op, vocabulary, reporter) && complete;
    }
    match.conditions.push_back(std::move(*condition));
  }
  return complete && reporter.error_count() == errors ? std::optional(std::move(match)) : std::nullopt;
}

bool matches(const Match& match, const Case& c) {
  return std::ranges::all_of(match.conditions, [&](const Condition& condition) { return holds(condition, c); });
}

}  // namespace numcheck::plan
