#include "reference/gemm_scale_overflow.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "op/field.hpp"
#include "op/gemm.hpp"
#include "op/gemm_scaling.hpp"
#include "reference/broken_elements.hpp"
#include "reference/cause.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kComputed = 64;

/// An operand as it is stored, k within rows, with the scales of its rows or blocks.
struct ScaledRows {
  const op::Operand& codes;
  const op::Operand& scales;
  op::BlockLayout layout;

  [[nodiscard]] const double* row(std::int64_t i) const { return codes.data + i * layout.cols; }
  [[nodiscard]] double scale(std::int64_t i, std::int64_t at) const {
    const op::ScaleSteps steps = layout.dense_steps();
    return std::fabs(scales.data[i / layout.block_rows * steps.down + at / layout.block_cols * steps.across]);
  }
};

/// Whether a sum of products that share their scales overflows when it is multiplied by the larger one.
bool overflows(const ScaledRows& a, const ScaledRows& b, std::int64_t row, std::int64_t col, std::int64_t products) {
  constexpr double kLimit = 0.99 * 0x1p128;  // of FP32, but for the roundings of the sum
  for (std::int64_t begin = 0; begin < a.layout.cols; begin += products) {
    const std::int64_t end = std::min(begin + products, a.layout.cols);
    double sum = 0;
    for (std::int64_t t = begin; t < end; ++t) {
      sum += a.row(row)[t] * b.row(col)[t];
    }
    if (std::fabs(sum) * std::max(a.scale(row, begin), b.scale(col, begin)) >= kLimit) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<op::Finding> scale_overflow(const op::FindingRequest& request) {
  const auto p = op::from_params<op::GemmParams>(*request.params);
  if (!op::has_line_scales(p) || op::has_scales_in_products(p) || p.alpha == 0) {
    return {};
  }
  const std::vector<std::int64_t> elements = broken_elements(request, kComputed);
  if (elements.empty()) {
    return {};
  }
  const auto rows_of = [&](op::BlockLayout layout) {
    return ScaledRows{op::operand_named(request.inputs, layout.codes), op::operand_named(request.inputs, layout.scales),
                      layout};
  };
  const ScaledRows a = rows_of(op::scales_of_a(p)), b = rows_of(op::scales_of_b(p));
  const auto explained = std::ranges::count_if(
      elements, [&](std::int64_t at) { return overflows(a, b, at / p.n, at % p.n, op::scaled_products(p)); });
  const double share = static_cast<double>(explained) / static_cast<double>(elements.size());
  if (share < kLeastExplained) {
    return {};
  }
  return {cause_finding(op::kScaleOverflow, request.outputs[0].port, share,
                        "sums overflow when they are multiplied by one of their scales", "what is wrong",
                        op::Finding::About::pattern)};
}

}  // namespace numcheck::reference
