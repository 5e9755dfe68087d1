// A GEMM request that owns its operands, for the tests of the reference.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/rng.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "op/gemm_scaling.hpp"
#include "op/reference.hpp"
#include "reference/references.hpp"

namespace numcheck::reference::testing {

struct GemmProblem {
  op::GemmParams gemm;
  std::vector<double> a;
  std::vector<double> b;
  std::vector<double> c;
  std::vector<double> bias;
  double a_scale = 1;
  double b_scale = 1;
  std::vector<double> a_scales, b_scales;  ///< of rows or blocks
  std::vector<std::int64_t> sample;
  op::Params params;

  [[nodiscard]] op::ReferenceRequest request() {
    params = op::to_params(gemm);
    const op::GemmParams& p = gemm;
    op::ReferenceRequest out{.params = &params, .inputs = {}, .sample = {sample}};
    out.inputs.push_back({"a", a.data(), p.batch, p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k, a_scale});
    out.inputs.push_back({"b", b.data(), p.batch, p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n, b_scale});
    if (!c.empty()) {
      out.inputs.push_back({"c", c.data(), p.batch, p.m, p.n, 1});
    }
    if (!bias.empty()) {
      out.inputs.push_back({"bias", bias.data(), 1, 1, p.n, 1});
    }
    if (op::has_line_scales(p)) {
      const auto add = [&out](const op::BlockLayout& layout, const std::vector<double>& scales) {
        const op::Port port = op::scale_port(layout, op::Role::input);
        out.inputs.push_back({layout.scales, scales.data(), 1, port.rows, port.cols, 1});
      };
      add(op::scales_of_a(p), a_scales);
      add(op::scales_of_b(p), b_scales);
    }
    return out;
  }

  [[nodiscard]] std::vector<double> output(std::string_view port = "d") {
    const op::Values values = gemm_reference().values(request());
    for (const op::OutputValues& out : values.outputs) {
      if (out.port == port) {
        return {out.value.span().begin(), out.value.span().end()};
      }
    }
    return {};
  }

  /// Elements of op(A) and op(B).
  [[nodiscard]] double first(std::int64_t batch, std::int64_t i, std::int64_t t) const {
    const std::int64_t at = gemm.trans_a ? t * gemm.m + i : i * gemm.k + t;
    return a[static_cast<std::size_t>(batch * gemm.m * gemm.k + at)];
  }
  [[nodiscard]] double second(std::int64_t batch, std::int64_t t, std::int64_t j) const {
    const std::int64_t at = gemm.trans_b ? j * gemm.k + t : t * gemm.n + j;
    return b[static_cast<std::size_t>(batch * gemm.k * gemm.n + at)];
  }
};

/// Philox words as doubles of 24 bits, uniform in (-1, 1).
inline std::vector<double> noise(std::int64_t size, std::uint32_t stream) {
  std::vector<double> out(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto words = core::philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, {stream, 0});
    out[i] = static_cast<float>(static_cast<std::int32_t>(words[0]) >> 7) * 0x1p-24F;
  }
  return out;
}

/// Integers in [-limit, limit].
inline std::vector<double> integers(std::int64_t size, std::uint32_t stream, int limit) {
  std::vector<double> out(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto words = core::philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, {stream, 1});
    out[i] = static_cast<double>(words[0] % static_cast<unsigned>(2 * limit + 1)) - limit;
  }
  return out;
}

/// Random operands of every port that the parameters read.
inline GemmProblem noisy(const op::GemmParams& p) {
  GemmProblem problem{.gemm = p};
  problem.a = noise(p.batch * p.m * p.k, 1);
  problem.b = noise(p.batch * p.k * p.n, 2);
  problem.c = p.beta == 0 ? std::vector<double>() : noise(p.batch * p.m * p.n, 3);
  problem.bias = p.bias ? noise(p.n, 4) : std::vector<double>();
  return problem;
}

}  // namespace numcheck::reference::testing
