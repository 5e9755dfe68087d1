#include "reference/nvfp4.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "op/nvfp4.hpp"
#include "reference/casts.hpp"
#include "reference/exact_output.hpp"
#include "reference/hadamard.hpp"
#include "reference/nvfp4_layout.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kSixth = 1.0F / 6;
constexpr unsigned kCodeBits = 4;

/// Lines that share their scales, and the scales.
class Band {
 public:
  Band(const Nvfp4Matrix& matrix, std::size_t number, const Nvfp4Rule& rule)
      : matrix_(matrix),
        length_(static_cast<std::size_t>(matrix.length)),
        first_(number * height(matrix)),
        end_(std::min(first_ + height(matrix), static_cast<std::size_t>(matrix.lines))) {
    std::vector<double> amaxes(static_cast<std::size_t>(matrix.across()));
    for (std::size_t line = first_; line < end_; ++line) {
      for (std::size_t i = 0; i < length_; ++i) {
        double& most = amaxes[i / kBlock];
        most = std::fmax(most, std::fabs(matrix.data[line * length_ + i]));
      }
    }
    std::ranges::transform(amaxes, std::back_inserter(scales_), rule);
  }

  [[nodiscard]] static std::size_t height(const Nvfp4Matrix& matrix) { return matrix.is_square ? kBlock : 1; }

  void store(Nvfp4Scaled& made) const {
    for (std::size_t line = first_; line < end_; ++line) {
      for (std::size_t block = 0; block < scales_.size(); ++block) {
        made.scales[line * scales_.size() + block] = static_cast<double>(scales_[block].stored);
      }
      for (std::size_t i = 0; i < length_; ++i) {
        const auto x = static_cast<float>(matrix_.data[line * length_ + i]);
        made.values[line * length_ + i] = static_cast<double>(x * scales_[i / kBlock].factor);
      }
    }
  }

 private:
  static constexpr auto kBlock = static_cast<std::size_t>(op::kNvfp4Block);

  const Nvfp4Matrix& matrix_;
  std::size_t length_, first_, end_;
  std::vector<Nvfp4Rule::Scale> scales_;
};

/// Which of the possible codes a device draws is not known: these are the nearest.
op::OutputValues drawn_output(std::string_view port, std::span<const double> nearest) {
  TrackedOutput out(port, nearest.size(), false);
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    out.set_undetermined(i, nearest[i]);
  }
  out.values().unpredictable = true;
  return std::move(out).take();
}

/// Leaves out blocks whose results depend on the order of FP32 sums: `count` elements of the output belong to each.
void leave_uncertain(const Nvfp4Layout& layout, std::int64_t count, op::OutputValues& output) {
  for (std::size_t block = 0; block < layout.uncertain().size(); ++block) {
    if (layout.uncertain()[block] != 0) {
      const std::int64_t first = static_cast<std::int64_t>(block) * count;
      output.outside.push_back({first, first + count});
      std::ranges::fill(output.value.span().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                        0);
    }
  }
}

void add_layout(op::Values& values, const Nvfp4Layout& source, const op::BlockLayout& layout, bool is_drawn) {
  Nvfp4Scaled made = source.scaled();
  core::Buffer<double> bytes = nvfp4_bytes(made.values.span());
  values.outputs.push_back(is_drawn ? drawn_output(layout.codes, bytes.span())
                                    : exact_output(layout.codes, std::move(bytes)));
  leave_uncertain(source, op::kNvfp4Block / 2, values.outputs.back());
  values.outputs.push_back(exact_output(layout.scales, std::move(made.scales)));
  leave_uncertain(source, 1, values.outputs.back());
}

/// Each draw's code is in the low half of its byte and in the high half of the one before it.
void derive_codes(std::span<double> values) {
  const Nvfp4Rule rule(amax_of(values));
  const float factor = rule(amax_of(values)).factor;
  std::vector<std::uint64_t> codes;
  for (const double value : values) {
    const auto scaled = static_cast<double>(static_cast<float>(value) * factor);
    codes.push_back(core::encode(scaled, core::Dtype::fp4_e2m1, core::Overflow::saturate));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(codes[i] | codes[(i + 1) % codes.size()] << kCodeBits);
  }
}

}  // namespace

Nvfp4Rule::Nvfp4Rule(double global_amax) {
  const auto amax = static_cast<float>(global_amax);
  const float quotient = std::fmin(op::kNvfp4Largest / amax, kLargest);
  const float scale = amax == 0 || quotient == 0 ? 1 : quotient;
  per_six_ = scale * kSixth;
  inverse_ = 1 / scale;
}

Nvfp4Rule::Scale Nvfp4Rule::operator()(double block_amax) const {
  const float needed = static_cast<float>(block_amax) * per_six_;
  const auto stored =
      static_cast<float>(core::round_to(static_cast<double>(needed), core::Dtype::fp8_e4m3, core::Overflow::saturate));
  return {std::fmin(1 / (stored * inverse_), kLargest), stored};
}

Nvfp4Scaled nvfp4_scaled(const Nvfp4Matrix& matrix, const Nvfp4Rule& rule) {
  const auto lines = static_cast<std::size_t>(matrix.lines), height = Band::height(matrix);
  Nvfp4Scaled made{core::Buffer<double>(lines * static_cast<std::size_t>(matrix.length)),
                   core::Buffer<double>(lines * static_cast<std::size_t>(matrix.across()))};
  core::parallel_for((lines + height - 1) / height,
                     [&](std::size_t number) { Band(matrix, number, rule).store(made); });
  return made;
}

core::Buffer<double> nvfp4_bytes(std::span<const double> scaled) {
  constexpr std::size_t kChunk = std::size_t{1} << 14;
  core::Buffer<double> bytes(scaled.size() / 2);
  core::parallel_chunks(bytes.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    std::vector<std::byte> codes(2 * (end - begin));
    core::encode(scaled.subspan(2 * begin, codes.size()), core::Dtype::fp4_e2m1, codes, core::Overflow::saturate);
    for (std::size_t i = begin; i < end; ++i) {
      const std::byte byte = codes[2 * (i - begin)] | codes[2 * (i - begin) + 1] << kCodeBits;
      bytes[i] = std::to_integer<int>(byte);
    }
  });
  return bytes;
}

op::Values nvfp4_quantized(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  op::Values values;
  // Whatever the layout: cases that differ in it share this reference.
  if (p.cols % 2 == 0) {
    add_layout(values, Nvfp4Layout(p, request.inputs, p.rowwise()), p.rowwise(), p.stochastic);
  }
  if (p.rows % 2 == 0 && !request.some_rows) {
    add_layout(values, Nvfp4Layout(p, request.inputs, p.columnwise()), p.columnwise(), p.stochastic);
  }
  return values;
}

op::Values nvfp4_dequantized(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::DequantizeParams>(*request.params);
  const op::Operand& q = op::operand_named(request.inputs, "q");
  const op::Operand& scales = op::operand_named(request.inputs, "q_scale_inv");
  const auto amax = static_cast<float>(op::operand_named(request.inputs, "q_global_amax").data[0]);
  const std::int64_t across = p.blocks().across();
  op::OutputValues y = exact_output("y", static_cast<std::size_t>(p.rows * p.cols));
  core::parallel_for(static_cast<std::size_t>(p.rows), [&](std::size_t r) {
    const auto row = static_cast<std::int64_t>(r);
    for (std::int64_t c = 0; c < p.cols; ++c) {
      const auto stored = static_cast<float>(scales.data[row * across + c / op::kNvfp4Block]);
      const float scale = stored * amax * (1 / op::kNvfp4Largest);
      const auto byte = static_cast<unsigned>(q.data[(row * p.cols + c) / 2]);
      const unsigned code = byte >> (c % 2 == 0 ? 0 : kCodeBits) & 0xFU;
      const auto number = static_cast<float>(core::decode(code, core::Dtype::fp4_e2m1));
      y.value[r * static_cast<std::size_t>(p.cols) + static_cast<std::size_t>(c)] = static_cast<double>(number * scale);
    }
  });
  op::Values values;
  values.outputs.push_back(std::move(y));
  return values;
}

void derive_global_amax(const op::DeriveRequest& request, std::span<double> values) {
  const op::Operand& x = op::operand_named(request.inputs, "x");
  if (request.port->name == "global_amax") {
    std::ranges::fill(values, amax_of({x.data, x.elements()}));
    return;
  }
  const op::OutputValues turned =
      transposed("x", x.data, static_cast<std::size_t>(x.rows), static_cast<std::size_t>(x.cols));
  std::ranges::fill(values, amax_of(hadamard_transformed(turned.value.span()).values.span()));
}

void derive_nvfp4(const op::DeriveRequest& request, std::span<double> values) {
  if (request.port->name == "q") {
    derive_codes(values);
    return;
  }
  const bool is_amax = request.port->name == "q_global_amax";
  const Nvfp4Rule rule(amax_of(values));
  for (double& value : values) {
    const double magnitude = std::isnan(value) ? 0 : std::fabs(value);
    // An amax of 0 or infinity would make all values alike.
    value = !is_amax                                 ? static_cast<double>(rule(magnitude).stored)
            : magnitude > 0 && magnitude < kInfinity ? magnitude
                                                     : 1;
  }
}

}  // namespace numcheck::reference
