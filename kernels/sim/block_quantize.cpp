#include "kernels/sim/block_quantize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "core/codec.hpp"
#include "kernels/sim/tensor_io.hpp"
#include "op/nvfp4.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr int kBias = 127;
constexpr int kMaxExponent = 254;
constexpr float kStaleAmax = 0.75F;

op::QuantizeParams params_of(const Call& call) {
  return op::from_params<op::QuantizeParams>(call.c->params);
}

bool is_tensor(const op::QuantizeParams& p) {
  return op::quantize_recipe(p.recipe) == op::QuantizeRecipe::tensor;
}

core::Dtype format_of(const op::QuantizeParams& p) {
  return core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3);
}

/// What codes are multiplied by, and what is stored.
struct Scale {
  float factor = 1;
  float stored = 1;
};

/// One layout: the elements of x [rows, cols] in blocks.
class Layout {
 public:
  Layout(const op::QuantizeParams& p, op::BlockLayout layout, core::Dtype input, std::string_view fault)
      : p_(p), layout_(layout), fault_(fault) {
    const bool wide = core::dtype_info(input).storage_bytes == 4;
    at_overflow_ = static_cast<float>(core::dtype_info(wide ? core::Dtype::fp32 : input).max_finite);
    largest_ = static_cast<float>(core::dtype_info(format_of(p)).max_finite);
  }

  /// The scale of every block, row by row of blocks.
  [[nodiscard]] std::vector<Scale> scales_of(const std::vector<float>& x) const {
    std::vector<float> amaxes(count());
    for (std::size_t i = 0; i < x.size(); ++i) {
      float& most = amaxes[block_of(i)];
      most = std::fmax(most, fault_ == "wrong_amax" ? x[i] : std::fabs(x[i]));
    }
    std::vector<Scale> scales;
    for (const float amax : amaxes) {
      const float taken = fault_ == "block_amax_stale" ? kStaleAmax * amax : amax;
      scales.push_back(p_.recipe == "mxfp8" ? exponent_scale(taken) : number_scale(taken));
    }
    return scales;
  }

  [[nodiscard]] std::vector<float> scaled(const std::vector<float>& x, const std::vector<Scale>& scales) const {
    std::vector<float> results(x.size());
    const auto smallest = static_cast<float>(std::ldexp(1.0, core::dtype_info(format_of(p_)).emin));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t block = block_of(i);
      float factor = scales[fault_ == "neighbour_scale" && block > 0 ? block - 1 : block].factor;
      factor *= fault_ == "scale_half" ? 0.5F : fault_ == "scale_double" ? 2 : 1;
      const bool cast_first = fault_ == "scale_after_cast";
      const float first =
          cast_first
              ? static_cast<float>(core::round_to(static_cast<double>(x[i]), format_of(p_), core::Overflow::saturate))
              : x[i];
      results[i] = first * factor;
      if (fault_ == "subnormal_codes_flushed" && std::fabs(results[i]) < smallest) {
        results[i] = 0;
      }
    }
    return results;
  }

  /// In the order in which the layout stores them.
  [[nodiscard]] std::vector<float> codes_in_order(const std::vector<float>& codes) const {
    const bool turned = layout_.codes_transposed && fault_ != "codes_not_transposed";
    return turned ? swapped(codes, layout_.rows, layout_.cols) : codes;
  }

  [[nodiscard]] std::vector<float> scales_in_order(const std::vector<Scale>& scales) const {
    std::vector<float> stored(scales.size());
    const std::size_t further = fault_ == "scale_index_off" ? 1 : 0;
    for (std::size_t block = 0; block < stored.size(); ++block) {
      const Scale& scale = scales[block];
      stored[(block + further) % stored.size()] = fault_ == "scale_inv_is_scale" ? scale.factor : scale.stored;
    }
    if (fault_ == "block_scale_off" && !stored.empty()) {
      stored[stored.size() / 2] *= 2;
    }
    const bool turned = layout_.scales_transposed != (fault_ == "scales_transposed");
    return turned ? swapped(stored, layout_.down(), layout_.across()) : stored;
  }

  void write(std::span<const PortMemory> ports, const std::vector<float>& codes,
             const std::vector<Scale>& scales) const {
    write_floats(ports, layout_.codes, codes_in_order(codes), fault_);
    write_floats(ports, layout_.scales, scales_in_order(scales), fault_);
    if (fault_ == "padding_written") {
      write_padding(port_memory(ports, layout_.scales));
    }
  }

 private:
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(layout_.down() * layout_.across()); }

  [[nodiscard]] std::size_t block_of(std::size_t element) const {
    const auto at = static_cast<std::int64_t>(element);
    return static_cast<std::size_t>(at / layout_.cols / layout_.block_rows * layout_.across() +
                                    at % layout_.cols / layout_.block_cols);
  }

  [[nodiscard]] Scale number_scale(float amax) const {
    const float least = fault_ == "epsilon_ignored" ? 0 : static_cast<float>(p_.epsilon);
    const float a = std::fmax(amax, least);
    float scale = 1;
    if (a > 0 && !std::isinf(a)) {
      scale = largest_ / a;
      scale = std::isinf(scale) ? at_overflow_ : scale;
      if (p_.has_power_of_two() && fault_ != "power_of_two_ignored") {
        scale = std::ldexp(1.0F, std::ilogb(scale));
      }
    }
    return {scale, 1.0F / scale};
  }

  [[nodiscard]] Scale exponent_scale(float amax) const {
    const bool up = (p_.rounding == "up" && fault_ != "block_scale_floor") || fault_ == "block_scale_up";
    int e = 0;
    if (up || amax == 0 || std::isinf(amax)) {
      e = static_cast<int>(core::encode(static_cast<double>(amax * (1.0F / largest_)), core::Dtype::e8m0,
                                        core::Overflow::saturate, core::Rounding::toward_positive));
    } else {
      e = std::clamp(std::ilogb(amax) - std::ilogb(largest_) + kBias, 0, kMaxExponent);
    }
    return {std::ldexp(1.0F, kBias - e), std::ldexp(1.0F, e - kBias)};
  }

  static std::vector<float> swapped(const std::vector<float>& in, std::int64_t rows, std::int64_t cols) {
    std::vector<float> out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto row = i / static_cast<std::size_t>(cols), col = i % static_cast<std::size_t>(cols);
      out[col * static_cast<std::size_t>(rows) + row] = in[i];
    }
    return out;
  }

  static void write_padding(const PortMemory& memory) {
    const op::Port& port = *memory.port;
    const auto width = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
    for (std::int64_t row = 0; row < port.rows; ++row) {
      std::byte* end = first_element(&memory) + static_cast<std::size_t>(row * port.ld + port.cols) * width;
      std::memset(end, 0, static_cast<std::size_t>(port.ld - port.cols) * width);
    }
  }

  const op::QuantizeParams& p_;
  op::BlockLayout layout_;
  std::string_view fault_;
  float at_overflow_ = 0;
  float largest_ = 0;
};

/// The values of codes, as a cast that reads codes instead of x sees them.
std::vector<float> values_of(const op::QuantizeParams& p, const std::vector<float>& scaled,
                             const std::vector<Scale>& scales) {
  const op::BlockLayout layout = p.rowwise();
  std::vector<float> values(scaled.size());
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t block = at / p.cols / layout.block_rows * layout.across() + at % p.cols / layout.block_cols;
    values[i] =
        static_cast<float>(core::round_to(static_cast<double>(scaled[i]), format_of(p), core::Overflow::saturate)) *
        scales[static_cast<std::size_t>(block)].stored;
  }
  return values;
}

}  // namespace

void write_blocks(const op::QuantizeParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> x = faulty_input(ports, fault);
  const core::Dtype input = port_memory(ports, "x").port->dtype;
  const Layout rows(p, p.rowwise(), input, fault);
  const std::vector<Scale> row_scales = rows.scales_of(x);
  const std::vector<float> row_codes = rows.scaled(x, row_scales);
  if (op::has_rowwise(p.layout)) {
    rows.write(ports, row_codes, row_scales);
  }
  if (op::has_columnwise(p.layout)) {
    const Layout columns(p, p.columnwise(), input, fault);
    const std::vector<float> read = fault == "columnwise_from_rowwise" ? values_of(p, row_codes, row_scales) : x;
    const std::vector<Scale> scales = columns.scales_of(read);
    columns.write(ports, fault == "rowwise_scales_columnwise" ? row_codes : columns.scaled(read, scales), scales);
  }
}

std::vector<float> faulty_input(std::span<const PortMemory> ports, const std::string& fault) {
  std::vector<float> x = read_floats(ports, "x");
  for (float& value : x) {
    if (fault == "fp16_detour") {
      value = static_cast<float>(core::round_to(static_cast<double>(value), core::Dtype::fp16));
    } else if (fault == "nan_saturated" && std::isnan(value)) {
      value = std::numeric_limits<float>::infinity();
    }
  }
  return x;
}

std::string needs_one_scale(const Call& call) {
  return is_tensor(params_of(call)) ? "" : "the recipe has a scale for every block, and no amax";
}

std::string needs_blocks(const Call& call) {
  return is_tensor(params_of(call)) ? "the tensor has one scale" : "";
}

std::string needs_several_blocks(const Call& call) {
  const op::QuantizeParams p = params_of(call);
  if (is_tensor(p)) {
    return needs_blocks(call);
  }
  if (p.block_shape == "16x16" && p.rows <= op::kNvfp4Block && p.cols <= op::kNvfp4Block) {
    return "the tensor is one block";
  }
  const bool several = std::ranges::any_of(
      p.layouts(), [](const op::BlockLayout& layout) { return layout.down() * layout.across() > 1; });
  return several ? "" : "the tensor is one block";
}

std::string needs_block_grid(const Call& call) {
  const op::QuantizeParams p = params_of(call);
  if (is_tensor(p)) {
    return needs_blocks(call);
  }
  const bool is_grid = std::ranges::any_of(
      p.layouts(), [](const op::BlockLayout& layout) { return layout.down() > 1 && layout.across() > 1; });
  return is_grid ? "" : "the blocks are a row or a column";
}

std::string needs_scale_padding(const Call& call) {
  const bool padded = std::ranges::any_of(
      call.ports, [](const op::Port& port) { return port.role == op::Role::output && port.ld > port.cols; });
  return padded ? "" : "the scales have no padding";
}

std::string needs_rounding_up(const Call& call) {
  const op::QuantizeParams p = params_of(call);
  return p.recipe == "mxfp8" && p.rounding == "up" ? "" : "no power of two is rounded up";
}

std::string needs_rounding_down(const Call& call) {
  return params_of(call).rounding == "floor" ? "" : "no scale follows from floor(log2 amax)";
}

std::string needs_block_epsilon(const Call& call) {
  const op::QuantizeParams p = params_of(call);
  return !is_tensor(p) && p.epsilon > 0 ? "" : "no scale of a block has an epsilon";
}

std::string needs_power_of_two(const Call& call) {
  const op::QuantizeParams p = params_of(call);
  const bool rounded = !is_tensor(p) && p.recipe != "mxfp8" && p.has_power_of_two();
  return rounded ? "" : "no FP32 scale of a block is rounded to a power of two";
}

std::string needs_columnwise_blocks(const Call& call) {
  const op::QuantizeParams p = params_of(call);
  if (is_tensor(p) || p.recipe == "block_128x128" || p.block_shape == "16x16") {
    return "both layouts have the same scales";
  }
  return op::has_columnwise(p.layout) ? "" : "no column-wise codes are written";
}

std::string needs_wide_input(const Call& call) {
  return op::port_named(call.ports, "x").dtype == core::Dtype::fp16 ? "x is FP16" : "";
}

}  // namespace numcheck::kernels::sim
