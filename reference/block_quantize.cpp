#include "reference/block_quantize.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "data/scaling.hpp"
#include "reference/cast_kernels.hpp"
#include "reference/casts.hpp"
#include "reference/exact_output.hpp"

namespace numcheck::reference {
namespace {

constexpr int kBias = 127;

core::Dtype code_format(const std::string& name) {
  return core::parse_dtype(name).value_or(core::Dtype::fp8_e4m3);
}

/// The largest number that a device's format of x holds.
float largest_of(core::Dtype input) {
  const core::Dtype stored = core::dtype_info(input).storage_bytes == 4 ? core::Dtype::fp32 : input;
  return static_cast<float>(core::dtype_info(stored).max_finite);
}

/// One row of blocks of x.
class Band {
 public:
  Band(std::span<const double> x, const op::BlockLayout& layout, std::size_t number)
      : layout_(layout),
        cols_(static_cast<std::size_t>(layout.cols)),
        first_(number * static_cast<std::size_t>(layout.block_rows)),
        end_(std::min(first_ + static_cast<std::size_t>(layout.block_rows), static_cast<std::size_t>(layout.rows))),
        x_(x) {}

  /// Of every block.
  [[nodiscard]] std::vector<double> amaxes() const {
    std::vector<double> most(static_cast<std::size_t>(layout_.across()));
    for (std::size_t r = first_; r < end_; ++r) {
      for_each_piece(r, [&](std::size_t block, std::size_t at, std::size_t count) {
        most[block] = std::max(most[block], cast_kernels().largest_magnitude(x_.data() + at, count));
      });
    }
    return most;
  }

  void scale(const std::vector<BlockScale>& scales, double largest, std::span<double> codes) const {
    for (std::size_t r = first_; r < end_; ++r) {
      for_each_piece(r, [&](std::size_t block, std::size_t at, std::size_t count) {
        cast_kernels().scaled(x_.data() + at, count, scales[block].factor, largest, codes.data() + at);
      });
    }
  }

 private:
  /// body(block, index of its first element in the row, how many).
  template <class Body>
  void for_each_piece(std::size_t row, const Body& body) const {
    const auto width = static_cast<std::size_t>(layout_.block_cols);
    for (std::size_t c = 0; c < cols_; c += width) {
      body(c / width, row * cols_ + c, std::min(width, cols_ - c));
    }
  }

  const op::BlockLayout& layout_;
  std::size_t cols_, first_, end_;
  std::span<const double> x_;
};

/// As stored: [cols, rows] if the layout has them so.
op::OutputValues code_output(const op::BlockLayout& layout, core::Buffer<double> codes) {
  const auto rows = static_cast<std::size_t>(layout.rows), cols = static_cast<std::size_t>(layout.cols);
  return layout.codes_transposed ? transposed(layout.codes, codes.data(), rows, cols)
                                 : exact_output(layout.codes, std::move(codes));
}

/// As stored: [across, down] if the layout has them so.
op::OutputValues scale_output(const op::BlockLayout& layout, core::Buffer<double> scales) {
  const auto down = static_cast<std::size_t>(layout.down()), across = static_cast<std::size_t>(layout.across());
  return layout.scales_transposed ? transposed(layout.scales, scales.data(), down, across)
                                  : exact_output(layout.scales, std::move(scales));
}

void add_layout(op::Values& values, std::span<const double> x, const op::BlockLayout& layout, const BlockRule& rule) {
  BlockCodes made = block_codes(x, layout, rule);
  values.outputs.push_back(code_output(layout, std::move(made.codes)));
  values.outputs.push_back(scale_output(layout, std::move(made.scales)));
}

/// The cast whose codes and scales `dequantize` reads.
op::QuantizeParams cast_of(const op::DequantizeParams& p) {
  return {.rows = p.rows,
          .cols = p.cols,
          .format = p.format,
          .recipe = p.recipe,
          .power_of_two = "off",
          .scale_layout = p.scale_layout};
}

}  // namespace

BlockRule::BlockRule(const op::QuantizeParams& p, core::Dtype input)
    : rule_{.codes = code_format(p.format),
            .epsilon = static_cast<float>(p.epsilon),
            .power_of_two = p.has_power_of_two(),
            .at_overflow = largest_of(input)},
      has_exponents_(op::quantize_recipe(p.recipe) == op::QuantizeRecipe::mxfp8),
      up_(p.rounding == "up") {}

BlockScale BlockRule::operator()(double amax) const {
  if (has_exponents_) {
    const int e = block_exponent(amax, rule_.codes, up_);
    return {std::ldexp(1.0F, kBias - e), std::ldexp(1.0F, e - kBias)};
  }
  const float scale = rule_.scale_for(amax);
  return {scale, data::scale_inverse(scale)};
}

BlockCodes block_codes(std::span<const double> x, const op::BlockLayout& layout, const BlockRule& rule) {
  const auto down = static_cast<std::size_t>(layout.down()), across = static_cast<std::size_t>(layout.across());
  const double largest = core::dtype_info(rule.codes()).max_finite;
  BlockCodes made{core::Buffer<double>(x.size()), core::Buffer<double>(down * across)};
  core::parallel_for(down, [&](std::size_t number) {
    const Band band(x, layout, number);
    std::vector<BlockScale> scales;
    std::ranges::transform(band.amaxes(), std::back_inserter(scales), rule);
    for (std::size_t block = 0; block < across; ++block) {
      made.scales[number * across + block] = static_cast<double>(scales[block].stored);
    }
    band.scale(scales, largest, made.codes.span());
  });
  return made;
}

op::Values block_quantized(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const BlockRule rule(p, x.dtype);
  op::Values values;
  // Whatever the layout: cases that differ in it share this reference.
  add_layout(values, {x.data, x.elements()}, p.rowwise(), rule);
  if (!request.some_rows) {
    add_layout(values, {x.data, x.elements()}, p.columnwise(), rule);
  }
  return values;
}

op::Values unscaled_block_codes(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  op::Values values;
  for (const op::BlockLayout& layout : p.layouts()) {
    core::Buffer<double> codes(x.elements());
    scale_into({x.data, x.elements()}, 1, core::dtype_info(code_format(p.format)).max_finite, codes.span());
    values.outputs.push_back(code_output(layout, std::move(codes)));
  }
  return values;
}

op::Values columnwise_of_rowwise_scales(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  op::Values values;
  BlockCodes made = block_codes({x.data, x.elements()}, p.rowwise(), BlockRule(p, x.dtype));
  values.outputs.push_back(code_output(p.columnwise(), std::move(made.codes)));
  return values;
}

op::Values block_dequantized(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::DequantizeParams>(*request.params);
  const op::Operand& q = op::operand_named(request.inputs, "q");
  const op::Operand& scales = op::operand_named(request.inputs, "q_scale_inv");
  const op::BlockLayout layout = p.blocks();
  const op::ScaleSteps steps = layout.dense_steps();
  op::OutputValues y = exact_output("y", q.elements());
  core::parallel_for(static_cast<std::size_t>(p.rows), [&](std::size_t r) {
    const std::int64_t line = static_cast<std::int64_t>(r) / layout.block_rows * steps.down;
    for (std::int64_t c = 0; c < p.cols; ++c) {
      const auto at = r * static_cast<std::size_t>(p.cols) + static_cast<std::size_t>(c);
      const auto scale = static_cast<float>(scales.data[line + c / layout.block_cols * steps.across]);
      y.value[at] = static_cast<double>(static_cast<float>(q.data[at]) * scale);
    }
  });
  op::Values values;
  values.outputs.push_back(std::move(y));
  return values;
}

void derive_blocks(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::DequantizeParams>(*request.params);
  const BlockRule rule(cast_of(p), core::Dtype::fp32);
  if (request.port->name == "q") {
    BlockCodes made = block_codes(values, p.blocks(), rule);
    std::ranges::copy(made.codes.span(), values.begin());
    return;
  }
  for (double& value : values) {
    value = static_cast<double>(rule(std::isnan(value) ? 0 : std::fabs(value)).stored);
  }
}

}  // namespace numcheck::reference
