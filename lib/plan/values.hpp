// Parameter values in plans: scalars, lists and ranges of the fields that an op or a distribution describes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "op/value.hpp"
#include "plan/node.hpp"
#include "plan/reporter.hpp"

namespace numcheck::plan {

/// Decodes one value of a field; reports wrong types, non-integers where integers are expected (1e3), and values out of
/// range.
[[nodiscard]] std::optional<op::Value> decode_scalar(const Node& node, const op::Field& field, Reporter& reporter);

/// first, first + step, ... (or first, 2 first, 4 first, ...): `count` values, not written out, because a range may
/// have 10^12 of them.
struct ValueRange {
  op::Value first;
  op::Value step;  ///< same type as first; unused for one value
  bool doubling = false;
  std::uint64_t count = 1;
};

/// The values that one parameter runs through.
struct ValueAxis {
  std::vector<ValueRange> ranges;
  const Node* node = nullptr;  ///< where they come from; null: the field's default

  /// Saturates at UINT64_MAX.
  [[nodiscard]] std::uint64_t count() const noexcept;
  [[nodiscard]] std::vector<op::Value> expand() const;
};

/// Decodes a scalar, a list of scalars and ranges, or {"from", "to", "step"} or {"pow2": [a, b]} (all inclusive).
[[nodiscard]] std::optional<ValueAxis> decode_axis(const Node& node, const op::Field& field, Reporter& reporter);

/// Decodes an unsigned integer of up to 64 bits; `what` names it in messages.
[[nodiscard]] std::optional<std::uint64_t> decode_unsigned(const Node& node, std::string_view what,
                                                           std::uint64_t minimum, std::uint64_t maximum,
                                                           Reporter& reporter);

/// Decodes a number (also "inf", "-inf", "nan") in [minimum, maximum]; NaN is in no range.
[[nodiscard]] std::optional<double> decode_number(const Node& node, std::string_view what, double minimum,
                                                  double maximum, Reporter& reporter);

/// Decodes a signed integer in [minimum, maximum].
[[nodiscard]] std::optional<std::int64_t> decode_integer(const Node& node, std::string_view what, double minimum,
                                                         double maximum, Reporter& reporter);

/// A limit as people would write it: 1073741824 rather than 1.073741824e+09.
[[nodiscard]] std::string bound_text(double value);

/// a * b and a + b, UINT64_MAX where they do not fit.
[[nodiscard]] std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) noexcept;
[[nodiscard]] std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) noexcept;

}  // namespace numcheck::plan
