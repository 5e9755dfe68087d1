#include "op/softmax_mask.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::op {

SoftmaxMask softmax_mask(const std::string& name) {
  if (name == "none") {
    return SoftmaxMask::none;
  }
  if (name == "arbitrary") {
    return SoftmaxMask::arbitrary;
  }
  if (name == "causal") {
    return SoftmaxMask::causal;
  }
  if (name == "causal_bottom_right") {
    return SoftmaxMask::causal_bottom_right;
  }
  throw core::InternalError("no softmax mask is named " + name);
}

std::int64_t columns_before_diagonal(SoftmaxMask mask, std::int64_t row, std::int64_t sq, std::int64_t sk) noexcept {
  if (!is_causal(mask)) {
    return sk;
  }
  const std::int64_t shift = mask == SoftmaxMask::causal ? 0 : sk - sq;
  return std::clamp<std::int64_t>(row + 1 + shift, 0, sk);
}

std::int64_t softmax_lanes(std::int64_t sk) noexcept {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(sk)));
}

std::vector<std::string> check_softmax_size(std::string_view op, std::int64_t batches, std::int64_t heads,
                                            std::int64_t sq, std::int64_t sk) {
  constexpr double kMostElements = 0x1p40;
  const double elements =
      static_cast<double>(batches) * static_cast<double>(heads) * static_cast<double>(sq) * static_cast<double>(sk);
  if (elements <= kMostElements) {
    return {};
  }
  return {fmt::format("{}: batches * heads * sq * sk is {:.3g} elements; the limit is 2^40", op, elements)};
}

}  // namespace numcheck::op
