#include "reference/gemm_scale_overflow.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "op/field.hpp"
#include "op/gemm.hpp"
#include "op/gemm_scaling.hpp"
#include "reference/broken_elements.hpp"
#include "reference/cause.hpp"
#include "reference/gemm_operands.hpp"

namespace numcheck::reference {
namespace {

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

/// What becomes of an element whose sums overflow when they are multiplied by the larger of their scales; nothing where none does.
std::optional<double> overflowed(const ScaledRows& a, const ScaledRows& b, std::int64_t row, std::int64_t col,
                                 const op::GemmParams& p) {
  constexpr double kLimit = 0.99 * 0x1p128;  // of FP32, but for the roundings of the sum
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bool up = false, down = false;
  const std::int64_t products = op::scaled_products(p);
  for (std::int64_t begin = 0; begin < a.layout.cols; begin += products) {
    const std::int64_t end = std::min(begin + products, a.layout.cols);
    double sum = 0;
    for (std::int64_t t = begin; t < end; ++t) {
      sum += a.row(row)[t] * b.row(col)[t];
    }
    const bool is_infinite = std::fabs(sum) * std::max(a.scale(row, begin), b.scale(col, begin)) >= kLimit;
    up = up || (is_infinite && sum > 0);
    down = down || (is_infinite && sum < 0);
  }
  if (up && down) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return up || down ? std::optional(std::copysign(kInfinity, (up ? 1 : -1) * p.alpha)) : std::nullopt;
}

/// Whether that is what an epilogue leaves of z: gelu(-infinity) is NaN in the form z (1 + tanh(...)) / 2.
bool is_left(double got, double z, Epilogue epilogue) {
  const bool is_nan = std::isnan(z) || (epilogue == Epilogue::gelu && z < 0);
  return is_nan ? std::isnan(got) : got == z;
}

}  // namespace

std::vector<op::Finding> scale_overflow(const op::FindingRequest& request) {
  const auto p = op::from_params<op::GemmParams>(*request.params);
  if (!op::has_line_scales(p) || op::has_scales_in_products(p) || p.alpha == 0) {
    return {};
  }
  const std::vector<BrokenElement> broken = broken_elements(request, parse_epilogue(p));
  if (broken.empty()) {
    return {};
  }
  const auto rows_of = [&](op::BlockLayout layout) {
    return ScaledRows{op::operand_named(request.inputs, layout.codes), op::operand_named(request.inputs, layout.scales),
                      layout};
  };
  const ScaledRows a = rows_of(op::scales_of_a(p)), b = rows_of(op::scales_of_b(p));
  const double share = explained_share(broken, [&, epilogue = parse_epilogue(p)](const BrokenElement& element) {
    const std::optional<double> z = overflowed(a, b, element.at / p.n, element.at % p.n, p);
    return z.has_value() && is_left(element.got, *z, epilogue);
  });
  if (share < kLeastExplained) {
    return {};
  }
  return {cause_finding(op::kScaleOverflow, request.outputs[0].port, share,
                        "sums overflow when they are multiplied by one of their scales", "what is wrong",
                        op::Finding::About::pattern)};
}

}  // namespace numcheck::reference
