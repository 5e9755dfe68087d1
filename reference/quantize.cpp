#include "op/quantize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/parallel.hpp"
#include "reference/independent_rows.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;

op::OutputValues exact_output(std::string_view port, std::size_t elements) {
  op::OutputValues out;
  out.port = port;
  out.value = core::Buffer<double>(elements);
  out.bit_exact = true;
  return out;
}

op::OutputValues scalar_output(std::string_view port, double value) {
  op::OutputValues out = exact_output(port, 1);
  out.value[0] = value;
  return out;
}

/// out[c][r] = in[r][c], by tiles that stay in the first-level cache.
op::OutputValues transposed(std::string_view port, const double* in, std::size_t rows, std::size_t cols) {
  constexpr std::size_t kTile = 32;
  op::OutputValues out = exact_output(port, rows * cols);
  core::parallel_chunks(cols, kTile, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t first = 0; first < rows; first += kTile) {
      const std::size_t last = std::min(rows, first + kTile);
      for (std::size_t c = begin; c < end; ++c) {
        for (std::size_t r = first; r < last; ++r) {
          out.value[c * rows + r] = in[r * cols + c];
        }
      }
    }
  });
  return out;
}

/// Of the magnitudes; NaN is dropped, as the devices' maximum does.
double largest_of(const op::Operand& x) {
  std::vector<double> largest((x.elements() + kChunk - 1) / kChunk);
  core::parallel_chunks(x.elements(), kChunk, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    std::array<double, 8> most{};  // as many chains as a processor runs side by side
    for (std::size_t i = begin; i < end; ++i) {
      const double magnitude = std::fabs(x.data[i]);
      double& chain = most[i % most.size()];
      chain = magnitude > chain ? magnitude : chain;
    }
    largest[chunk] = std::ranges::max(most);
  });
  return largest.empty() ? 0 : std::ranges::max(largest);
}

double product32(double a, double b) {
  return static_cast<double>(static_cast<float>(a) * static_cast<float>(b));
}

double reciprocal32(double x) {
  return static_cast<double>(1.0F / static_cast<float>(x));
}

core::Dtype format_of(const op::QuantizeParams& p) {
  return core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3);
}

/// Current scaling: RN32(max / amax), 1 for an amax of 0, infinity or NaN, FLT_MAX if the quotient overflows.
/// Source: TransformerEngine common/recipe/recipe_common.cuh, compute_scale_from_amax.
double scale_for(double amax, core::Dtype format) {
  const auto largest = static_cast<float>(amax);
  if (!(largest > 0) || std::isinf(largest)) {
    return 1;
  }
  const float scale = static_cast<float>(core::dtype_info(format).max_finite) / largest;
  return static_cast<double>(std::isinf(scale) ? std::numeric_limits<float>::max() : scale);
}

void derive_scale(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  double scale = p.scale;
  if (scale == 0) {
    const double largest = largest_of(x);
    scale = scale_for(largest, format_of(p));
  }
  std::ranges::fill(values, scale);
}

op::Values quantize_values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const double scale = op::operand_named(request.inputs, "scale").data[0];
  const double largest = core::dtype_info(format_of(p)).max_finite;
  op::OutputValues q = exact_output("q", x.elements());
  core::parallel_chunks(x.elements(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const double scaled = product32(x.data[i], scale);
      q.value[i] = std::isnan(scaled) ? scaled : std::clamp(scaled, -largest, largest);
    }
  });
  op::Values result;
  // Whatever the layout: cases that differ in it share this reference.
  op::OutputValues q_t =
      transposed("q_t", q.value.data(), static_cast<std::size_t>(p.rows), static_cast<std::size_t>(p.cols));
  result.outputs.push_back(std::move(q));
  result.outputs.push_back(std::move(q_t));
  result.outputs.push_back(scalar_output("amax", largest_of(x)));
  result.outputs.push_back(scalar_output("scale_inv", reciprocal32(scale)));
  return result;
}

op::Values dequantize_values(const op::ReferenceRequest& request) {
  const op::Operand& q = op::operand_named(request.inputs, "q");
  op::OutputValues y = exact_output("y", q.elements());
  core::parallel_chunks(q.elements(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      y.value[i] = product32(q.data[i], q.scale);
    }
  });
  op::Values result;
  result.outputs.push_back(std::move(y));
  return result;
}

op::Values transpose_values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::TransposeParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  op::Values result;
  result.outputs.push_back(transposed("y", x.data, static_cast<std::size_t>(p.rows), static_cast<std::size_t>(p.cols)));
  return result;
}

std::vector<std::int64_t> transposed_from(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::TransposeParams>(*request.params);
  std::vector<std::int64_t> sources(static_cast<std::size_t>(p.rows * p.cols));
  core::parallel_for(static_cast<std::size_t>(p.cols), [&](std::size_t c) {
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const auto column = static_cast<std::int64_t>(c);
      sources[static_cast<std::size_t>(column * p.rows + r)] = r * p.cols + column;
    }
  });
  return sources;
}

/// Of codes as they lie; their transpose has other rows.
std::optional<op::Params> on_code_rows(const op::Params& params, std::int64_t rows) {
  return op::from_params<op::QuantizeParams>(params).layout == "rowwise"
             ? on_rows<op::QuantizeParams, &op::QuantizeParams::rows>(params, rows)
             : std::nullopt;
}

op::Reference reference_of(op::Values (*values)(const op::ReferenceRequest&), std::string_view version) {
  op::Reference reference;
  reference.values = values;
  reference.version = version;
  return reference;
}

}  // namespace

op::Reference quantize_reference() {
  op::Reference reference = reference_of(&quantize_values, "quantize-1");
  reference.derive = &derive_scale;
  reference.mistakes = &quantize_mistakes;
  reference.on_rows = &on_code_rows;
  return reference;
}

op::Reference dequantize_reference() {
  op::Reference reference = reference_of(&dequantize_values, "dequantize-1");
  reference.mistakes = &dequantize_mistakes;
  return reference;
}

op::Reference transpose_reference() {
  op::Reference reference = reference_of(&transpose_values, "transpose-1");
  reference.moved = &transposed_from;
  reference.mistakes = &transpose_mistakes;
  return reference;
}

}  // namespace numcheck::reference
