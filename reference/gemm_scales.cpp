#include "reference/gemm_scales.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::reference {
namespace {

/// function(code) times of_scale(that of its block), of every element.
template <class Function, class OfScale>
core::Buffer<double> scaled(const op::Operand& codes, const op::Operand& scales, const op::BlockLayout& layout,
                            const Function& function, const OfScale& of_scale) {
  const op::ScaleSteps steps = layout.dense_steps();
  if (codes.elements() != static_cast<std::size_t>(layout.rows * layout.cols) ||
      scales.elements() != static_cast<std::size_t>(layout.down() * layout.across())) {
    throw core::InternalError("reference of gemm: there are other scales of " + std::string(layout.codes) +
                              " than the parameters say");
  }
  core::Buffer<double> values(codes.elements());
  core::parallel_for(static_cast<std::size_t>(layout.rows), [&](std::size_t row) {
    const auto i = static_cast<std::int64_t>(row);
    const double* line = scales.data + i / layout.block_rows * steps.down;
    for (std::int64_t begin = 0; begin < layout.cols; begin += layout.block_cols) {
      const double scale = of_scale(line[begin / layout.block_cols * steps.across]);
      const std::int64_t end = std::min(begin + layout.block_cols, layout.cols);
      for (std::int64_t at = i * layout.cols + begin; at < i * layout.cols + end; ++at) {
        values[static_cast<std::size_t>(at)] = function(codes.data[at]) * scale;
      }
    }
  });
  return values;
}

/// E4M3 scales have a sign that nothing reads.
bool has_small_scales(const op::BlockLayout& layout) {
  return layout.scale_format == core::Dtype::fp8_e4m3;
}

/// |x|, but for 0 not below that.
double at_least(double smallest, double x) {
  return x == 0 ? 0 : std::max(std::fabs(x), smallest);
}

}  // namespace

core::Buffer<double> dequantised(const op::Operand& codes, const op::Operand& scales, const op::BlockLayout& layout) {
  return scaled(
      codes, scales, layout, [](double code) { return code; },
      [unsign = has_small_scales(layout)](double scale) { return unsign ? std::fabs(scale) : scale; });
}

core::Buffer<double> aligned_magnitudes(const op::Operand& codes, const op::Operand& scales,
                                        const op::BlockLayout& layout) {
  constexpr double kSmallest = 0x1p-6;  // of E4M3, and above that of E5M2
  const bool is_e2m1 = has_small_scales(layout);
  return scaled(
      codes, scales, layout, [is_e2m1](double code) { return at_least(is_e2m1 ? 1 : kSmallest, code); },
      [is_e2m1](double scale) { return is_e2m1 ? at_least(kSmallest, scale) : scale; });
}

void derive_gemm_scales(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::GemmParams>(*request.params);
  const bool power_of_two = p.power_of_two || op::has_scales_in_products(p);
  const int smallest = op::has_scales_in_products(p) ? -127 : -149;  // of E8M0, of FP32
  const auto e4m3 = [](double size) {
    constexpr double kSmallestScale = 0x1p-9;
    return std::max(core::round_to(size, core::Dtype::fp8_e4m3, core::Overflow::saturate), kSmallestScale);
  };
  for (double& value : values) {
    const double size = std::fabs(static_cast<double>(static_cast<float>(value)));
    if (size == 0 || !std::isfinite(size)) {
      value = 1;
    } else {
      value = op::has_global_scales(p) ? e4m3(size)
              : power_of_two           ? std::ldexp(1.0, std::max(std::ilogb(size), smallest))
                                       : size;
    }
  }
}

}  // namespace numcheck::reference
