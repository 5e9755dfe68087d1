#include "plan/values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/strings.hpp"

namespace numcheck::plan {
namespace {

void out_of_range(const Node& node, std::string_view what, std::string_view minimum, std::string_view maximum,
                  Reporter& reporter) {
  const std::string shown = node.text.size() > 40 ? node.text.substr(0, 40) + "\xE2\x80\xA6" : node.text;
  reporter.error(node, fmt::format("{} is {}; it must be between {} and {}", what, shown, minimum, maximum));
}

bool is_integer_token(std::string_view token) noexcept {
  return token.find_first_not_of("0123456789", token.starts_with('-') ? 1 : 0) == std::string_view::npos;
}

/// Reports a floating-point number where an integer is expected.
void not_an_integer(const Node& node, std::string_view what, Reporter& reporter) {
  double value = 0;
  std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  reporter.error(node, fmt::format("{} must be an integer, not {}", what, node.text.substr(0, 40)),
                 {whole ? fmt::format("write {:.0f}", value) : std::string(), {}});
}

std::optional<op::Value> decode_choice(const Node& node, const op::Field& field, Reporter& reporter) {
  const std::string what = quote(field.name);
  if (field.choices.empty() &&
      (node.is(Node::Kind::text) || (node.is(Node::Kind::number) && is_integer_token(node.text)))) {
    return op::Value(node.text);  // text, as which a number is as good
  }
  if (field.choices.empty()) {
    wrong_kind(node, what, "a string or an integer", reporter);
    return {};
  }
  if (!node.is(Node::Kind::text)) {
    wrong_kind(node, what, "a string", reporter, suggestion("", field.choices, "one of:"));
    return {};
  }
  if (std::ranges::find(field.choices, node.text) == field.choices.end()) {
    reporter.error(node, fmt::format("{} cannot be {}", what, quote(node.text)),
                   {suggestion(node.text, field.choices, fmt::format("{} is one of:", field.name)), {}});
    return {};
  }
  return op::Value(node.text);
}

}  // namespace

std::string bound_text(double value) {
  return std::abs(value) < 1e15 && value == std::floor(value) ? fmt::format("{:.0f}", value) : core::shortest(value);
}

std::optional<std::int64_t> decode_integer(const Node& node, std::string_view what, double minimum, double maximum,
                                           Reporter& reporter) {
  if (!node.is(Node::Kind::number)) {
    wrong_kind(node, what, "an integer", reporter);
    return {};
  }
  if (!is_integer_token(node.text)) {
    not_an_integer(node, what, reporter);
    return {};
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
  if (error != std::errc() || static_cast<double>(value) < minimum || static_cast<double>(value) > maximum) {
    out_of_range(node, what, bound_text(minimum), bound_text(maximum), reporter);
    return {};
  }
  return value;
}

std::optional<double> decode_number(const Node& node, std::string_view what, double minimum, double maximum,
                                    Reporter& reporter) {
  double value = 0;
  if (node.is(Node::Kind::text) && (node.text == "inf" || node.text == "-inf" || node.text == "nan")) {
    value = node.text == "nan" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    value = node.text == "-inf" ? -value : value;
  } else if (!node.is(Node::Kind::number)) {
    wrong_kind(node, what, "a number", reporter);
    return {};
  } else {
    const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
    if (error != std::errc()) {
      reporter.error(node, fmt::format("{} is {}, which no double can hold", what, node.text.substr(0, 40)));
      return {};
    }
  }
  if (!(value >= minimum && value <= maximum)) {
    out_of_range(node, what, bound_text(minimum), bound_text(maximum), reporter);
    return {};
  }
  return value;
}

std::optional<std::uint64_t> decode_unsigned(const Node& node, std::string_view what, std::uint64_t minimum,
                                             std::uint64_t maximum, Reporter& reporter) {
  if (!node.is(Node::Kind::number)) {
    wrong_kind(node, what, "an integer", reporter);
    return {};
  }
  if (!is_integer_token(node.text)) {
    not_an_integer(node, what, reporter);
    return {};
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
  if (error != std::errc() || end != node.text.data() + node.text.size() || value < minimum || value > maximum) {
    out_of_range(node, what, std::to_string(minimum), std::to_string(maximum), reporter);
    return {};
  }
  return value;
}

std::optional<op::Value> decode_scalar(const Node& node, const op::Field& field, Reporter& reporter) {
  const std::string what = quote(field.name);
  switch (field.kind) {
    case op::FieldKind::boolean:
      if (!node.is(Node::Kind::boolean)) {
        wrong_kind(node, what, "true or false", reporter);
        return {};
      }
      return op::Value(node.truth);
    case op::FieldKind::integer: {
      const auto value = decode_integer(node, what, field.minimum, field.maximum, reporter);
      return value ? std::optional(op::Value(*value)) : std::nullopt;
    }
    case op::FieldKind::number: {
      const auto value = decode_number(node, what, field.minimum, field.maximum, reporter);
      return value ? std::optional(op::Value(*value)) : std::nullopt;
    }
    case op::FieldKind::choice:
      return decode_choice(node, field, reporter);
  }
  return {};
}

}  // namespace numcheck::plan
