#include "kernels/sim/nvfp4.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "core/codec.hpp"
#include "kernels/sim/block_quantize.hpp"
#include "kernels/sim/hadamard.hpp"
#include "kernels/sim/stochastic_e2m1.hpp"
#include "kernels/sim/tensor_io.hpp"
#include "op/nvfp4.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr auto kBlock = static_cast<std::size_t>(op::kNvfp4Block);
constexpr float kStale = 0.75F;
constexpr unsigned kCodeBits = 4, kCode = 0xF;
constexpr float kMost = std::numeric_limits<float>::max();

float e4m3(float value, core::Rounding rounding) {
  return static_cast<float>(
      core::round_to(static_cast<double>(value), core::Dtype::fp8_e4m3, core::Overflow::saturate, rounding));
}

/// The tensor's scale.
float encode_scale(std::span<const PortMemory> ports, std::string_view port, std::string_view fault) {
  const float amax = read_floats(ports, port).at(0) * (fault == "global_amax_stale" ? kStale : 1);
  if (amax == 0 || std::isinf(amax) || fault == "global_scale_ignored") {
    return 1;
  }
  return std::min(op::kNvfp4Largest / amax, kMost);
}

struct Scale {
  float factor = 1;
  float stored = 1;
  float unrounded = 1;  ///< what is rounded when it is stored
};

/// One layout: lines of x, which are its rows or its columns.
class Side {
 public:
  Side(const op::QuantizeParams& p, bool turned, std::vector<float> x, float global, std::string_view fault)
      : fault_(fault),
        draws_{p.stochastic && fault != "stochastic_nearest", static_cast<std::uint64_t>(p.rng_seed), turned, fault},
        turned_(turned),
        cols_(static_cast<std::size_t>(p.cols)),
        lines_(static_cast<std::size_t>(turned ? p.cols : p.rows)),
        length_(static_cast<std::size_t>(turned ? p.rows : p.cols)),
        height_(p.block_shape == "16x16" && fault != "lines_for_squares" ? kBlock : 1),
        x_(std::move(x)) {
    std::vector<float> amaxes((lines_ + height_ - 1) / height_ * across());
    for (std::size_t line = 0; line < lines_; ++line) {
      for (std::size_t i = 0; i < length_; ++i) {
        float& most = amaxes[line / height_ * across() + i / kBlock];
        most = std::fmax(most, fault_ == "wrong_amax" ? at(line, i) : std::fabs(at(line, i)));
      }
    }
    for (std::size_t line = 0; line < lines_; ++line) {
      for (std::size_t block = 0; block < across(); ++block) {
        scales_.push_back(scale_for(amaxes[line / height_ * across() + block], global));
      }
    }
  }

  [[nodiscard]] std::size_t across() const { return (length_ + kBlock - 1) / kBlock; }
  [[nodiscard]] const std::vector<Scale>& scales() const { return scales_; }

  /// The elements' codes, line by line, with these scales.
  [[nodiscard]] std::vector<unsigned> codes(const std::vector<Scale>& scales) const {
    std::vector<unsigned> all;
    for (std::size_t line = 0; line < lines_; ++line) {
      for (std::size_t i = 0; i < length_; ++i) {
        const std::size_t block = line * across() + i / kBlock;
        const float factor = scales[fault_ == "neighbour_scale" && block > 0 ? block - 1 : block].factor;
        all.push_back(code(at(line, i), factor, line * length_ + i));
      }
    }
    return all;
  }
  [[nodiscard]] std::vector<unsigned> codes() const { return codes(scales_); }

  /// What the codes stand for, in the order of x. Precondition: lines are rows.
  [[nodiscard]] std::vector<float> values(float global) const {
    std::vector<float> all;
    const std::vector<unsigned> made = codes();
    for (std::size_t i = 0; i < made.size(); ++i) {
      const auto number = static_cast<float>(core::decode(made[i], core::Dtype::fp4_e2m1));
      all.push_back(number * scales_[i / length_ * across() + i % length_ / kBlock].stored / global);
    }
    return all;
  }

  [[nodiscard]] std::vector<float> stored_scales() const {
    std::vector<float> stored(scales_.size());
    for (std::size_t block = 0; block < stored.size(); ++block) {
      const std::size_t next = fault_ == "scale_index_off" ? (block + 1) % stored.size() : block;
      stored[next] = fault_ == "scale_inv_is_scale" ? scales_[block].factor : scales_[block].unrounded;
    }
    if (fault_ == "block_scale_off" && !stored.empty()) {
      constexpr float kHalf = 224;
      float& other = stored[stored.size() / 2];
      other *= other > kHalf ? 0.5F : 2;
    }
    return fault_ == "scales_transposed" ? swapped(stored, lines_, across()) : stored;
  }

  void write(std::span<const PortMemory> ports, const op::BlockLayout& layout, std::vector<unsigned> codes) const {
    if (turned_ && fault_ == "codes_not_transposed") {
      codes = swapped(codes, lines_, length_);
    }
    std::vector<float> bytes(codes.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const bool other_way = fault_ == "halves_swapped";
      bytes[i] =
          static_cast<float>(codes[2 * i + (other_way ? 1 : 0)] | codes[2 * i + (other_way ? 0 : 1)] << kCodeBits);
    }
    write_floats(ports, layout.codes, bytes, fault_);
    write_floats(ports, layout.scales, stored_scales(), fault_);
    if (fault_ == "padding_written") {
      write_padding(port_memory(ports, layout.scales));
    }
  }

 private:
  [[nodiscard]] float at(std::size_t line, std::size_t i) const {
    return turned_ ? x_[i * cols_ + line] : x_[line * cols_ + i];
  }

  [[nodiscard]] Scale scale_for(float amax, float global) const {
    const float needed = (fault_ == "block_amax_stale" ? kStale * amax : amax) * (global * (1.0F / 6));
    const bool truncates = fault_ == "scale_truncated";
    const float stored = e4m3(needed, truncates ? core::Rounding::toward_zero : core::Rounding::nearest_even);
    const float used = fault_ == "scale_unrounded" ? needed : stored;
    return {std::min(1 / (used * (1 / global)), kMost), stored, truncates ? stored : needed};
  }

  [[nodiscard]] unsigned code(float x, float factor, std::size_t element) const {
    const auto rounded = [](float value, core::Rounding rounding) {
      return core::encode(static_cast<double>(value), core::Dtype::fp4_e2m1, core::Overflow::saturate, rounding);
    };
    factor *= fault_ == "scale_half" ? 0.5F : fault_ == "scale_double" ? 2 : 1;
    if (fault_ == "scale_after_cast") {
      x = static_cast<float>(core::decode(rounded(x, core::Rounding::nearest_even), core::Dtype::fp4_e2m1));
    }
    float scaled = x * factor;
    if (fault_ == "subnormal_codes_flushed" && std::fabs(scaled) < 1) {
      scaled = 0;
    }
    const bool nearest = fault_ == "stochastic_nearest_line" && element / length_ == lines_ / 2;
    if (draws_.is_stochastic && !nearest) {
      return draws_.code(scaled, element);
    }
    return static_cast<unsigned>(
        rounded(scaled, fault_ == "codes_truncated" ? core::Rounding::toward_zero : core::Rounding::nearest_even));
  }

  template <class T>
  static std::vector<T> swapped(const std::vector<T>& in, std::size_t rows, std::size_t cols) {
    std::vector<T> out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      out[i % cols * rows + i / cols] = in[i];
    }
    return out;
  }

  static void write_padding(const PortMemory& memory) {
    const op::Port& port = *memory.port;
    for (std::int64_t row = 0; row < port.rows; ++row) {
      std::memset(first_element(&memory) + row * port.ld + port.cols, 0, static_cast<std::size_t>(port.ld - port.cols));
    }
  }

  std::string_view fault_;
  StochasticCodes draws_;
  bool turned_;
  std::size_t cols_, lines_, length_, height_;
  std::vector<float> x_;
  std::vector<Scale> scales_;
};

/// Column-wise codes that are made with the scales of the rows' blocks.
std::vector<unsigned> codes_of_rows(const Side& rows, std::size_t height, std::size_t width) {
  const std::vector<unsigned> codes = rows.codes();
  std::vector<unsigned> turned(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    turned[i % width * height + i / width] = codes[i];
  }
  return turned;
}

op::QuantizeParams params_of(const Call& call) {
  return op::from_params<op::QuantizeParams>(call.c->params);
}

}  // namespace

void write_nvfp4(const op::QuantizeParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> x = faulty_input(ports, fault);
  const float global = encode_scale(ports, "global_amax", fault);
  const auto cols = static_cast<std::size_t>(p.cols), height = static_cast<std::size_t>(p.rows);
  const Side rows(p, false, fault == "hadamard_of_rows" ? hadamard_transformed(x, {height, cols, false}, fault) : x,
                  global, fault);
  if (op::has_rowwise(p.layout)) {
    rows.write(ports, p.rowwise(), rows.codes());
  }
  if (op::has_columnwise(p.layout)) {
    std::vector<float> read = fault == "columnwise_from_rowwise" ? rows.values(global) : x;
    if (p.hadamard && fault != "hadamard_missing") {
      read = hadamard_transformed(std::move(read), {height, cols, true}, fault);
    }
    const bool has_own_amax = p.hadamard && fault != "hadamard_amax_of_x";
    const float own = has_own_amax ? encode_scale(ports, "global_amax_t", fault) : global;
    const Side columns(p, true, std::move(read), own, fault);
    const bool has_row_scales = fault == "rowwise_scales_columnwise";
    columns.write(ports, p.columnwise(), has_row_scales ? codes_of_rows(rows, height, cols) : columns.codes());
  }
}

std::vector<float> nvfp4_numbers(std::span<const PortMemory> ports, const std::string& fault) {
  std::vector<float> numbers;
  for (const float byte : read_floats(ports, "q")) {
    const auto bits = static_cast<unsigned>(byte);
    const auto low = static_cast<float>(core::decode(bits & kCode, core::Dtype::fp4_e2m1));
    const auto high = static_cast<float>(core::decode(bits >> kCodeBits, core::Dtype::fp4_e2m1));
    numbers.push_back(fault == "halves_swapped" ? high : low);
    numbers.push_back(fault == "halves_swapped" ? low : high);
  }
  return numbers;
}

std::vector<float> nvfp4_scales(std::vector<float> stored, std::span<const PortMemory> ports,
                                const std::string& fault) {
  const float amax = fault == "global_amax_ignored" ? op::kNvfp4Largest : read_floats(ports, "q_global_amax").at(0);
  for (float& scale : stored) {
    scale = scale * amax * (1.0F / op::kNvfp4Largest);
  }
  return stored;
}

std::string needs_nvfp4(const Call& call) {
  return params_of(call).recipe == "nvfp4" ? "" : "the recipe is not nvfp4";
}

std::string needs_nvfp4_codes(const Call& call) {
  return op::from_params<op::DequantizeParams>(call.c->params).recipe == "nvfp4" ? "" : "the recipe is not nvfp4";
}

std::string needs_stochastic(const Call& call) {
  return params_of(call).stochastic ? "" : "codes are rounded to nearest even";
}

std::string needs_hadamard(const Call& call) {
  const op::QuantizeParams p = params_of(call);
  return !p.hadamard                    ? "nothing is transformed"
         : op::has_columnwise(p.layout) ? ""
                                        : "no column-wise codes are written";
}

std::string needs_rows_and_hadamard(const Call& call) {
  const op::QuantizeParams p = params_of(call);
  return !p.hadamard                  ? "nothing is transformed"
         : !op::has_rowwise(p.layout) ? "no row-wise codes are written"
         : p.cols < op::kNvfp4Block   ? "rows are shorter than 16 elements"
                                      : "";
}

std::string needs_square_blocks(const Call& call) {
  const op::QuantizeParams p = params_of(call);
  const bool differs = (op::has_rowwise(p.layout) && p.rows > 1) || (op::has_columnwise(p.layout) && p.cols > 1);
  return p.block_shape == "16x16" && differs ? "" : "no block is 16 x 16";
}

}  // namespace numcheck::kernels::sim
