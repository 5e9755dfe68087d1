#include "reference/gemm_operands.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "op/field.hpp"
#include "op/gemm_scaling.hpp"
#include "reference/gemm_scales.hpp"

namespace numcheck::reference {
namespace {

const op::Operand& operand_of(const op::ReferenceRequest& request, std::string_view port, std::int64_t batch,
                              std::int64_t rows, std::int64_t cols) {
  const op::Operand& found = op::operand_named(request.inputs, port);
  if (found.batch != batch || found.rows != rows || found.cols != cols) {
    const auto text = [](std::int64_t b, std::int64_t r, std::int64_t c) {
      return "[" + std::to_string(b) + ", " + std::to_string(r) + ", " + std::to_string(c) + "]";
    };
    throw core::InternalError("reference of gemm: operand \"" + std::string(port) + "\" is " +
                              text(found.batch, found.rows, found.cols) + ", the parameters say " +
                              text(batch, rows, cols));
  }
  if (found.data == nullptr && batch * rows * cols > 0) {
    throw core::InternalError("reference of gemm: operand \"" + std::string(port) + "\" has no data");
  }
  return found;
}

void check_sample(const op::Sample& sample, std::int64_t outputs) {
  for (const std::int64_t index : sample.indices) {
    if (index < 0 || index >= outputs) {
      throw core::InternalError("reference of gemm: sampled index " + std::to_string(index) + " is not in [0, " +
                                std::to_string(outputs) + ")");
    }
  }
}

/// Replaces codes by what they stand for. Wherever nothing is multiplied they are not read.
void replace_codes(const op::ReferenceRequest& request, decltype(&dequantised) function, GemmOperands& g) {
  const auto values = [&](const op::BlockLayout& layout) {
    return std::make_shared<const core::Buffer<double>>(function(
        op::operand_named(request.inputs, layout.codes), op::operand_named(request.inputs, layout.scales), layout));
  };
  g.dequantised = {values(op::scales_of_a(g.params)), values(op::scales_of_b(g.params))};
  g.a.data = g.dequantised[0]->data();
  g.b.data = g.dequantised[1]->data();
}

bool is_finite(const double* values, std::int64_t size) {
  std::atomic<bool> finite = true;
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  core::parallel_chunks(static_cast<std::size_t>(size), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    if (!std::all_of(values + begin, values + end, [](double x) { return std::isfinite(x); })) {
      finite = false;
    }
  });
  return finite;
}

}  // namespace

GemmOperands gemm_operands(const op::ReferenceRequest& request) {
  GemmOperands g;
  g.params = op::from_params<op::GemmParams>(*request.params);
  const op::GemmParams& p = g.params;
  g.shape = {.batch = p.batch, .m = p.m, .n = p.n, .k = p.alpha == 0 ? 0 : p.k};  // without alpha nothing is multiplied
  const op::Operand& a = operand_of(request, "a", p.batch, p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k);
  const op::Operand& b = operand_of(request, "b", p.batch, p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n);
  g.a = {a.data, p.trans_a};
  g.b = {b.data, p.trans_b};
  g.product_scale = p.alpha * a.scale * b.scale;
  if (op::has_line_scales(p)) {
    replace_codes(request, &dequantised, g);
  }
  if (p.beta != 0) {
    const op::Operand& c = operand_of(request, "c", p.batch, p.m, p.n);
    g.c = c.data;
    g.c_scale = p.beta * c.scale;
  }
  if (p.bias) {
    const op::Operand& bias = operand_of(request, "bias", 1, 1, p.n);
    g.bias = bias.data;
    g.bias_scale = bias.scale;
  }
  g.has_amax = p.output == "fp8_e4m3" || p.output == "fp8_e5m2";
  check_sample(request.sample, g.outputs());
  return g;
}

GemmOperands gemm_magnitudes(const op::ReferenceRequest& request) {
  GemmOperands g = gemm_operands(request);
  if (op::has_line_scales(g.params)) {
    replace_codes(request, &aligned_magnitudes, g);
  }
  return g;
}

bool all_finite(const GemmOperands& g) {
  const ProductShape& s = g.shape;
  return is_finite(g.a.data, s.batch * s.m * s.k) && is_finite(g.b.data, s.batch * s.k * s.n) &&
         (g.c == nullptr || is_finite(g.c, g.outputs())) && (g.bias == nullptr || is_finite(g.bias, s.n)) &&
         std::isfinite(g.product_scale) && std::isfinite(g.c_scale) && std::isfinite(g.bias_scale);
}

Epilogue parse_epilogue(const op::GemmParams& params) {
  if (params.epilogue == "none") {
    return Epilogue::none;
  }
  if (params.epilogue == "relu") {
    return Epilogue::relu;
  }
  if (params.epilogue == "gelu") {
    return Epilogue::gelu;
  }
  throw core::InternalError("reference of gemm: no epilogue \"" + params.epilogue + "\"");
}

double apply_epilogue(Epilogue epilogue, double z) noexcept {
  switch (epilogue) {
    case Epilogue::relu:
      return z < 0 ? 0 : z;
    case Epilogue::gelu: {
      constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
      const double u = kSqrtTwoOverPi * (z + 0.044715 * z * z * z);
      return z / (1 + std::exp(-2 * u));
    }
    case Epilogue::none:
      break;
  }
  return z;
}

}  // namespace numcheck::reference
