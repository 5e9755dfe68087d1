// Emulated kernels of attention's gradients: weights recomputed from lse, products on tensor cores or in FP32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "model/product.hpp"
#include "model/schedule.hpp"
#include "op/attention_params.hpp"
#include "op_problem.hpp"

namespace numcheck::reference::testing {

using Floats = std::vector<float>;
using Gradients = std::map<std::string, Floats, std::less<>>;

/// A dense matrix of operands or sums.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  Floats at;

  Matrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), at(static_cast<std::size_t>(r * c)) {}
  [[nodiscard]] Matrix transposed() const {
    Matrix out(columns, rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        out(j, i) = (*this)(i, j);
      }
    }
    return out;
  }
  float& operator()(std::int64_t i, std::int64_t j) { return at[static_cast<std::size_t>(i * columns + j)]; }
  float operator()(std::int64_t i, std::int64_t j) const { return at[static_cast<std::size_t>(i * columns + j)]; }
};

/// One way to compute the gradients, layout bhsd, no lengths.
struct Kernel {
  op::AttentionParams p;
  std::string mode;
  bool truncates = true;     ///< tensor cores as they are; otherwise FP32 fused multiply-adds of the same operands
  bool base_2 = true;        ///< exp2 of scores that are scaled by log2 e
  bool scale_first = false;  ///< dS is scaled before it is rounded
  bool drops_last = false;   ///< dp and D are divided by 1 - dropout together
  bool drops_sums = false;   ///< no factor is divided by 1 - dropout, but sums are
  bool flushes = false;      ///< subnormal FP32 results are zero
  double dot_factor = 1;     ///< of D; a fault unless it is 1
  float tanh_excess = 0;     ///< by what part the tanh of the cap is too large
  int parts = 1;             ///< sums over queries and keys are cut into so many, which are added in FP32

  [[nodiscard]] core::Dtype format() const { return op::find_mode(mode)->first; }
  [[nodiscard]] Gradients run(const Inputs& in) const;

 private:
  struct Head {
    Matrix q, k, v, given, p, ds, dt;
  };

  /// A result as the kernel leaves it.
  [[nodiscard]] float result(float x) const { return flushes && std::fabs(x) < 0x1p-126F ? 0.0F : x; }
  void divide_sums(Gradients& out) const;
  [[nodiscard]] core::Dtype multiplied() const { return mode == "tf32" ? core::Dtype::tf32 : format(); }
  [[nodiscard]] Matrix operand(const Inputs& in, const char* port, std::int64_t head, std::int64_t rows,
                               std::int64_t columns) const {
    Matrix out(rows, columns);
    const double* from = in.find(port)->second.data() + head * rows * columns;
    std::transform(from, from + rows * columns, out.at.begin(),
                   [this](double x) { return static_cast<float>(core::round_to(x, multiplied())); });
    return out;
  }
  [[nodiscard]] Matrix product(const Matrix& a, const Matrix& b, int slices) const;
  [[nodiscard]] Head head_of(const Inputs& in, std::int64_t batch, std::int64_t head) const;
  void differentiate(const Inputs& in, std::int64_t batch, std::int64_t head, Head& h, Gradients& out) const;
};

/// The product of operands that are rounded to the mode's format first.
inline Matrix Kernel::product(const Matrix& a, const Matrix& b, int slices) const {
  const auto rounded = [this](Matrix x) {
    std::ranges::transform(x.at, x.at.begin(), [this](float y) {
      return static_cast<float>(core::round_to(static_cast<double>(y), multiplied()));
    });
    return x;
  };
  model::Schedule schedule;
  if (truncates && mode != "fp32") {
    schedule = model::gemm_schedule(90, *op::find_mode(mode), false, mode == "tf32");
  }
  schedule.split_k = slices;
  const Matrix left = rounded(a), right = rounded(b);
  Matrix out(a.rows, b.columns);
  const int emin = core::dtype_info(multiplied()).emin;
  model::simulate_product(schedule, {left.at, right.at, a.rows, b.columns, a.columns, emin, emin}, out.at);
  return out;
}

inline Kernel::Head Kernel::head_of(const Inputs& in, std::int64_t batch, std::int64_t head) const {
  const std::int64_t shared = batch * p.key_heads() + head / (p.heads / p.key_heads()), own = batch * p.heads + head;
  Head h{operand(in, "q", own, p.sq, p.d),
         operand(in, "k", shared, p.sk, p.d),
         operand(in, "v", shared, p.sk, p.value_channels()),
         operand(in, "do", own, p.sq, p.value_channels()),
         Matrix(p.sq, p.sk),
         Matrix(p.sq, p.sk),
         Matrix(p.sq, p.sk)};
  h.p = product(h.q, h.k.transposed(), 1);
  h.ds = product(h.given, h.v.transposed(), 1);
  return h;
}

/// From the two products to p and the gradients of scores.
inline void Kernel::differentiate(const Inputs& in, std::int64_t batch, std::int64_t head, Head& h,
                                  Gradients& out) const {
  constexpr float kLog2E = 1.44269504F;
  const auto factor = static_cast<float>(p.factor()), cap = static_cast<float>(p.softcap);
  const std::int64_t first = (batch * p.heads + head) * p.sq, width = p.value_channels();
  for (std::int64_t i = 0; i < p.sq; ++i) {
    const auto lse = static_cast<float>(in.find("lse")->second[static_cast<std::size_t>(first + i)]);
    float dot = 0;
    for (std::int64_t c = (first + i) * width; c < (first + i + 1) * width; ++c) {
      dot += static_cast<float>(in.find("do")->second[static_cast<std::size_t>(c)]) *
             static_cast<float>(in.find("o")->second[static_cast<std::size_t>(c)]);
    }
    dot *= static_cast<float>(dot_factor);
    if (p.softmax == "learnable") {
      const auto sink = static_cast<float>(in.find("softmax_offset")->second[static_cast<std::size_t>(head)]);
      out["dsoftmax_offset"][static_cast<std::size_t>(head)] -= std::exp(sink - lse) * dot;
    }
    const op::KeyRange seen = p.visible(i, p.sq, p.sk);
    for (std::int64_t j = 0; j < p.sk; ++j) {
      const auto place = static_cast<std::size_t>((head * p.sq + i) * p.sk + j);
      const float bias = p.has_bias_tensor() ? static_cast<float>(in.find("bias")->second[place]) : 0.0F;
      float s = factor * (p.bias == "pre_scale" ? h.p(i, j) + bias : h.p(i, j)), slope = 1;
      if (cap != 0) {
        const float t = std::tanh(s / cap) * (1 + tanh_excess);
        s = cap * t;
        slope = 1 - t * t;
      }
      s = p.bias == "post_scale" ? s + bias : s;
      const bool visible = j >= seen.begin && j < seen.end;
      const float weight = result(base_2 ? std::exp2(std::fma(s, kLog2E, -(lse * kLog2E))) : std::exp(s - lse));
      const auto pair = static_cast<std::size_t>((first + i) * p.sk + j);
      const auto scale = drops_sums ? 1.0F : static_cast<float>(p.keep_scale());
      const float mask = p.has_dropout() ? static_cast<float>(in.find("dropout_mask")->second[pair]) : 1.0F;
      h.p(i, j) = visible ? result(weight * mask * scale) : 0.0F;
      const float difference = drops_last || drops_sums
                                   ? (h.ds(i, j) * mask - dot * static_cast<float>(1 - p.dropout)) * scale
                                   : h.ds(i, j) * mask * scale - dot;
      h.ds(i, j) = visible ? result(weight * result(difference)) : 0.0F;
      h.dt(i, j) = result(h.ds(i, j) * slope * (scale_first ? factor : 1.0F));
      if (p.has_bias_tensor()) {
        out["dbias"][place] += p.bias == "pre_scale" ? h.ds(i, j) * slope * factor : h.ds(i, j);
      }
    }
  }
}

inline void Kernel::divide_sums(Gradients& out) const {
  const auto scale = static_cast<float>(p.keep_scale());
  for (auto& [port, numbers] : out) {
    if (port != "dsoftmax_offset") {
      std::ranges::for_each(numbers, [this, scale](float& x) { x = result(x * scale); });
    }
  }
}

inline Gradients Kernel::run(const Inputs& in) const {
  const std::int64_t width = p.value_channels();
  Gradients out;
  out["dq"].resize(static_cast<std::size_t>(p.batches * p.heads * p.sq * p.d));
  out["dk"].resize(static_cast<std::size_t>(p.batches * p.key_heads() * p.sk * p.d));
  out["dv"].resize(static_cast<std::size_t>(p.batches * p.key_heads() * p.sk * width));
  if (p.has_bias_tensor()) {
    out["dbias"].resize(static_cast<std::size_t>(p.heads * p.sq * p.sk));
  }
  if (p.softmax == "learnable") {
    out["dsoftmax_offset"].resize(static_cast<std::size_t>(p.heads));
  }
  const auto add = [&out](const char* port, std::int64_t head, const Matrix& part) {
    float* to = out.find(port)->second.data() + head * part.rows * part.columns;
    std::transform(part.at.begin(), part.at.end(), to, to, std::plus<>());
  };
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    for (std::int64_t head = 0; head < p.heads; ++head) {
      const std::int64_t shared = batch * p.key_heads() + head / (p.heads / p.key_heads());
      Head h = head_of(in, batch, head);
      differentiate(in, batch, head, h, out);
      add("dq", batch * p.heads + head, product(h.dt, h.k, parts));
      add("dk", shared, product(h.dt.transposed(), h.q, parts));
      add("dv", shared, product(h.p.transposed(), h.given, parts));
    }
  }
  if (!scale_first) {
    const auto factor = static_cast<float>(p.factor());
    for (const char* port : {"dq", "dk"}) {
      std::ranges::for_each(out[port], [this, factor](float& x) { x = result(x * factor); });
    }
  }
  if (drops_sums) {
    divide_sums(out);
  }
  return out;
}

}  // namespace numcheck::reference::testing
