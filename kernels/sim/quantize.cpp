#include "op/quantize.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/block_quantize.hpp"
#include "kernels/sim/fp32_op.hpp"
#include "kernels/sim/moved_nans.hpp"
#include "kernels/sim/nvfp4.hpp"
#include "kernels/sim/perturbation.hpp"

namespace numcheck::kernels::sim {
namespace {

std::string needs_transpose(const Call& call) {
  const auto p = op::from_params<op::QuantizeParams>(call.c->params);
  const bool turned = op::find_port(call.ports, "q_t") != nullptr;
  return !turned ? "no transposed codes are written" : p.rows < 2 || p.cols < 2 ? "x is a vector" : "";
}

std::string needs_matrix(const Call& call) {
  const op::Port& x = op::port_named(call.ports, "x");
  return x.rows < 2 || x.cols < 2 ? "x is a vector" : "";
}

std::string needs_more_than_bf16(const Call& call) {
  return op::port_named(call.ports, "y").dtype == core::Dtype::bf16 ? "y is BF16" : "";
}

std::string needs_several_code_blocks(const Call& call) {
  const op::Port& scales = op::port_named(call.ports, "q_scale_inv");
  return scales.elements() < 2 ? "all codes have one scale" : "";
}

std::string needs_code_block_grid(const Call& call) {
  const op::Port& scales = op::port_named(call.ports, "q_scale_inv");
  return scales.rows < 2 || scales.cols < 2 ? "the blocks are a row or a column" : "";
}

constexpr std::array kQuantizeFaults = {
    OpFault{{"scale_half", "the scale is half the requested one"}},
    OpFault{{"scale_double", "the scale is twice the requested one"}},
    OpFault{{"scale_after_cast", "x is cast first and scaled afterwards"}},
    OpFault{{"fp16_detour", "x is converted to FP16 first"}, &needs_wide_input},
    OpFault{{"nan_saturated", "codes of NaN are those of infinity"}},
    OpFault{{"subnormal_codes_flushed", "codes below the smallest normal number become zero"}},
    OpFault{{"wrong_amax", "amax is the largest x, not the largest |x|"}},
    OpFault{{"scaled_amax", "amax is taken after scaling"}, &needs_one_scale},
    OpFault{{"scale_inv_is_scale", "scale_inv holds the scale"}},
    OpFault{{"codes_not_transposed", "the transposed codes are in the order of the others"}, &needs_transpose},
    kBlockAmaxStale,
    kExponentFloor,
    kExponentUp,
    kStoredScaleOff,
    kPreviousScale,
    kScalesTransposed,
    kScaleIndexOff,
    kCodesOfCodes,
    kRowwiseScales,
    kPaddingWritten,
    kEpsilonIgnored,
    kPowerOfTwoIgnored,
    kHalvesSwapped,
    kCodesTruncated,
    kScaleTruncated,
    kScaleUnrounded,
    kGlobalAmaxStale,
    kGlobalScaleIgnored,
    kLinesForSquares,
    kStochasticNearest,
    kStochasticNearestLine,
    kStochasticBiased,
    kStochasticEven,
    kStochasticUpward,
    kStochasticBeyond,
    kDrawsShared,
    kHadamardMissing,
    kHadamardOfRows,
    kHadamardUnsigned,
    kHadamardUnrounded,
    kHadamardAmaxOfRows,
};
constexpr std::array kDequantizeFaults = {
    OpFault{{"scale_half", "the scale is half the requested one"}},
    OpFault{{"scale_inverted", "codes are divided by scale_inv"}},
    OpFault{{"scale_ignored", "codes are not scaled"}},
    OpFault{{"sign_dropped", "the sign of a code is ignored"}},
    OpFault{kNeighbourScale.info, &needs_several_code_blocks},
    OpFault{kScalesTransposed.info, &needs_code_block_grid},
    OpFault{{"product_rounded_twice", "products are rounded to BF16 before they are rounded to the output's format"},
            &needs_more_than_bf16},
    kHalvesReadSwapped,
    kGlobalAmaxIgnored,
};
constexpr std::array kTransposeFaults = {
    OpFault{{"codes_not_transposed", "the elements keep their order"}, &needs_matrix},
    OpFault{{"tile_skipped", "the last column of x is not moved"}},
    OpFault{{"swapped_pair", "the first two elements are swapped"}, &needs_matrix},
    OpFault{
        {"last_row_repeated", "the last row of x is read from the row before it, as with an index clamped too early"},
        &needs_matrix},
};

std::vector<float> transposed(const std::vector<float>& in, std::int64_t rows, std::int64_t cols) {
  std::vector<float> out(in.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      out[static_cast<std::size_t>(c * rows + r)] = in[static_cast<std::size_t>(r * cols + c)];
    }
  }
  return out;
}

float largest(const std::vector<float>& values, bool with_sign) {
  float maximum = 0;
  for (const float value : values) {
    maximum = std::fmax(maximum, with_sign ? value : std::fabs(value));
  }
  return maximum;
}

void run_quantize(const op::QuantizeParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  if (const op::QuantizeRecipe recipe = op::quantize_recipe(p.recipe); recipe != op::QuantizeRecipe::tensor) {
    recipe == op::QuantizeRecipe::nvfp4 ? write_nvfp4(p, ports, fault) : write_blocks(p, ports, fault);
    return;
  }
  const std::vector<float> x = faulty_input(ports, fault);
  const float requested = read_floats(ports, "scale").at(0);
  const float scale = requested * (fault == "scale_half" ? 0.5F : fault == "scale_double" ? 2 : 1);
  const core::DtypeInfo& info = core::dtype_info(core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3));
  const auto smallest = static_cast<float>(std::ldexp(1.0, info.emin));
  std::vector<float> scaled(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (fault == "scale_after_cast") {
      scaled[i] = static_cast<float>(core::round_to(x[i], info.dtype, core::Overflow::saturate)) * scale;
    } else {
      scaled[i] = x[i] * scale;
    }
    if (fault == "subnormal_codes_flushed" && std::fabs(scaled[i]) < smallest) {
      scaled[i] = 0;
    }
  }
  if (find_port(ports, "q") != nullptr) {
    write_floats(ports, "q", scaled, fault);
  }
  if (find_port(ports, "q_t") != nullptr) {
    write_floats(ports, "q_t", fault == "codes_not_transposed" ? scaled : transposed(scaled, p.rows, p.cols), fault);
  }
  constexpr float kStale = 0.75F;
  const float amax = largest(fault == "scaled_amax" ? scaled : x, fault == "wrong_amax");
  const std::array stored = {perturbed_amax(fault, fault == "stale_amax" ? kStale * amax : amax)};
  const PortMemory& slot = *find_port(ports, "amax");
  std::memcpy(slot.data + slot.port->offset_bytes, stored.data(), sizeof(float));
  const std::array inverse = {fault == "scale_inv_is_scale" ? requested : 1.0F / requested};
  write_floats(ports, "scale_inv", inverse, fault);
}

/// The scale of every code, in the order of the codes.
std::vector<float> scales_of_codes(const op::DequantizeParams& p, std::span<const PortMemory> ports,
                                   const std::string& fault) {
  std::vector<float> stored = read_floats(ports, "q_scale_inv");
  if (p.recipe == "nvfp4") {
    stored = nvfp4_scales(std::move(stored), ports, fault);
  }
  std::vector<float> scales(static_cast<std::size_t>(p.rows * p.cols), stored.empty() ? 1 : stored[0]);
  if (p.recipe == "tensor") {
    return scales;
  }
  const op::BlockLayout layout = p.blocks();
  const bool turned = layout.scales_transposed != (fault == "scales_transposed");
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::int64_t line = static_cast<std::int64_t>(i) / p.cols / layout.block_rows;
    const std::int64_t column = static_cast<std::int64_t>(i) % p.cols / layout.block_cols;
    const auto block =
        static_cast<std::size_t>(turned ? column * layout.down() + line : line * layout.across() + column);
    scales[i] = stored[fault == "neighbour_scale" && block > 0 ? block - 1 : block];
  }
  return scales;
}

void run_dequantize(const op::DequantizeParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  std::vector<float> values = p.recipe == "nvfp4" ? nvfp4_numbers(ports, fault) : read_floats(ports, "q");
  const std::vector<float> scales = scales_of_codes(p, ports, fault);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float factor = fault == "scale_half"       ? scales[i] / 2
                         : fault == "scale_inverted" ? 1 / scales[i]
                         : fault == "scale_ignored"  ? 1
                                                     : scales[i];
    values[i] = (fault == "sign_dropped" ? std::fabs(values[i]) : values[i]) * factor;
    if (fault == "product_rounded_twice") {
      values[i] = static_cast<float>(core::round_to(static_cast<double>(values[i]), core::Dtype::bf16));
    }
  }
  write_floats(ports, "y", values, fault);
}

void run_transpose(const op::TransposeParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> x = read_floats(ports, "x");
  std::vector<float> y = fault == "codes_not_transposed" ? x : transposed(x, p.rows, p.cols);
  if (fault == "tile_skipped") {
    std::fill(y.end() - p.rows, y.end(), 0.0F);
  } else if (fault == "swapped_pair") {
    std::swap(y[0], y[1]);
  } else if (fault == "last_row_repeated") {
    for (std::size_t end = static_cast<std::size_t>(p.rows); end <= y.size(); end += static_cast<std::size_t>(p.rows)) {
      y[end - 1] = y[end - 2];
    }
  }
  write_floats(ports, "y", y, fault);
  const auto rows = static_cast<std::size_t>(p.rows), cols = static_cast<std::size_t>(p.cols);
  move_nans(ports, "x", "y", [rows, cols](std::size_t i) { return i % rows * cols + i / rows; });
}

}  // namespace

const Binding& quantize() {
  return fp32_op<op::QuantizeParams, kQuantizeFaults, &run_quantize>("quantize");
}

const Binding& dequantize() {
  return fp32_op<op::DequantizeParams, kDequantizeFaults, &run_dequantize>("dequantize");
}

const Binding& transpose() {
  return fp32_op<op::TransposeParams, kTransposeFaults, &run_transpose>("transpose");
}

}  // namespace numcheck::kernels::sim
