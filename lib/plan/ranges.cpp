// Ranges and lists: the values that a parameter runs through.
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "plan/values.hpp"

namespace numcheck::plan {
namespace {

/// Number of values from `first` to `last` in steps of `step`, both inclusive; 0 if the step leads away.
std::uint64_t count_integers(std::int64_t first, std::int64_t last, std::int64_t step) noexcept {
  if (step == 0 || (step > 0) != (last >= first)) {
    return first == last && step != 0 ? 1 : 0;
  }
  const std::uint64_t span = step > 0 ? static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first)
                                      : static_cast<std::uint64_t>(first) - static_cast<std::uint64_t>(last);
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  return saturating_sum(span / stride, 1);
}

std::uint64_t count_numbers(double first, double last, double step) noexcept {
  if (step == 0 || (step > 0) != (last >= first)) {
    return first == last && step != 0 ? 1 : 0;
  }
  // Steps of 0.1 up to 1.0 must include 1.0, although the additions fall short of it.
  const double steps = std::floor((last - first) / step * (1 + 1e-12));
  return steps < 1e18 ? static_cast<std::uint64_t>(steps) + 1 : std::numeric_limits<std::uint64_t>::max();
}

/// Decodes {"from": a, "to": b, "step": s} for an integer or number field.
std::optional<ValueRange> decode_from_to(const Node& node, const op::Field& field, Reporter& reporter) {
  static constexpr std::array<std::string_view, 3> kKeys = {"from", "to", "step"};
  check_keys(node, kKeys, "a range", reporter);
  const Node* from = node.find("from");
  const Node* to = node.find("to");
  const Node* step = node.find("step");
  if (from == nullptr || to == nullptr) {
    reporter.error(node, fmt::format("this range has no \"{}\"", from == nullptr ? "from" : "to"),
                   {R"(ranges are {"from": a, "to": b, "step": s} or {"pow2": [a, b]})", {}});
    return {};
  }
  const std::optional<op::Value> first = decode_scalar(*from, field, reporter);
  const std::optional<op::Value> last = decode_scalar(*to, field, reporter);
  ValueRange range;
  if (field.kind == op::FieldKind::integer) {
    constexpr double kHuge = 9.2e18;
    const auto by =
        step == nullptr ? std::optional<std::int64_t>(1) : decode_integer(*step, "\"step\"", -kHuge, kHuge, reporter);
    if (!first || !last || !by) {
      return {};
    }
    range = {*first, *by, false, count_integers(std::get<std::int64_t>(*first), std::get<std::int64_t>(*last), *by)};
  } else {
    const auto by =
        step == nullptr ? std::optional<double>(1) : decode_number(*step, "\"step\"", -1e300, 1e300, reporter);
    if (!first || !last || !by) {
      return {};
    }
    range = {*first, *by, false, count_numbers(std::get<double>(*first), std::get<double>(*last), *by)};
  }
  if (range.count == 0) {
    reporter.error(step == nullptr ? *to : *step, "this range never gets from \"from\" to \"to\"",
                   {"\"step\" must not be 0 and must lead towards \"to\"", {}});
    return {};
  }
  return range;
}

/// Decodes {"pow2": [a, b]}: 2^a, 2^(a+1), ..., 2^b.
std::optional<ValueRange> decode_pow2(const Node& node, const op::Field& field, Reporter& reporter) {
  static constexpr std::array<std::string_view, 1> kKeys = {"pow2"};
  check_keys(node, kKeys, "this range", reporter);
  const Node& bounds = *node.find("pow2");
  if (!bounds.is(Node::Kind::array) || bounds.items.size() != 2) {
    reporter.error(bounds, "\"pow2\" must be a list of two exponents", {"[7, 13] means 128, 256, ..., 8192", {}});
    return {};
  }
  const bool integer = field.kind == op::FieldKind::integer;
  const double lowest = integer ? 0 : -1022;
  const double highest = integer ? 62 : 1023;
  const auto low = decode_integer(bounds.items[0], "an exponent", lowest, highest, reporter);
  const auto high = decode_integer(bounds.items[1], "an exponent", lowest, highest, reporter);
  if (!low || !high) {
    return {};
  }
  if (*low > *high) {
    reporter.error(bounds, fmt::format("\"pow2\" goes from {} down to {}", *low, *high),
                   {"smaller exponent first", {}});
    return {};
  }
  const double smallest = std::ldexp(1.0, static_cast<int>(*low));
  const double largest = std::ldexp(1.0, static_cast<int>(*high));
  if (smallest < field.minimum || largest > field.maximum) {
    const bool below = smallest < field.minimum;
    reporter.error(bounds.items[below ? 0 : 1],
                   fmt::format("{} is 2^{}; it must be between {} and {}", quote(field.name), below ? *low : *high,
                               bound_text(field.minimum), bound_text(field.maximum)));
    return {};
  }
  ValueRange range;
  range.doubling = true;
  range.count = static_cast<std::uint64_t>(*high - *low) + 1;
  range.first = integer ? op::Value(std::int64_t{1} << *low) : op::Value(smallest);
  range.step = range.first;
  return range;
}

std::optional<ValueRange> decode_range(const Node& node, const op::Field& field, Reporter& reporter) {
  if (!node.is(Node::Kind::object)) {
    const std::optional<op::Value> value = decode_scalar(node, field, reporter);
    return value ? std::optional(ValueRange{*value, *value, false, 1}) : std::nullopt;
  }
  if (field.kind != op::FieldKind::integer && field.kind != op::FieldKind::number) {
    wrong_kind(node, quote(field.name), field.kind == op::FieldKind::boolean ? "true or false" : "a string", reporter);
    return {};
  }
  return node.find("pow2") != nullptr ? decode_pow2(node, field, reporter) : decode_from_to(node, field, reporter);
}

op::Value value_at(const ValueRange& range, std::uint64_t i) {
  if (const auto* first = std::get_if<std::int64_t>(&range.first)) {
    return range.doubling ? op::Value(*first << i)
                          : op::Value(*first + std::get<std::int64_t>(range.step) * static_cast<std::int64_t>(i));
  }
  if (const auto* first = std::get_if<double>(&range.first)) {
    return range.doubling ? op::Value(std::ldexp(*first, static_cast<int>(i)))
                          : op::Value(*first + std::get<double>(range.step) * static_cast<double>(i));
  }
  return range.first;
}

}  // namespace

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) noexcept {
  return a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a ? std::numeric_limits<std::uint64_t>::max()
                                                                     : a * b;
}

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) noexcept {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

std::uint64_t ValueAxis::count() const noexcept {
  std::uint64_t total = 0;
  for (const ValueRange& range : ranges) {
    total = saturating_sum(total, range.count);
  }
  return total;
}

std::vector<op::Value> ValueAxis::expand() const {
  std::vector<op::Value> values;
  for (const ValueRange& range : ranges) {
    for (std::uint64_t i = 0; i < range.count; ++i) {
      values.push_back(value_at(range, i));
    }
  }
  return values;
}

std::optional<ValueAxis> decode_axis(const Node& node, const op::Field& field, Reporter& reporter) {
  ValueAxis axis;
  axis.node = &node;
  const bool list = node.is(Node::Kind::array);
  if (list && node.items.empty()) {
    reporter.error(node, fmt::format("{} is an empty list", quote(field.name)),
                   {"a list is an axis; it needs values", {}});
    return {};
  }
  bool complete = true;
  for (std::size_t i = 0; i < (list ? node.items.size() : 1); ++i) {
    std::optional<ValueRange> range = decode_range(list ? node.items[i] : node, field, reporter);
    complete = complete && range.has_value();
    if (range) {
      axis.ranges.push_back(std::move(*range));
    }
  }
  return complete ? std::optional(std::move(axis)) : std::nullopt;
}

}  // namespace numcheck::plan
