#include "model/epilogue.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/parallel.hpp"

namespace numcheck::model {
namespace {

constexpr std::int64_t kElementsPerTask = 1 << 15;

constexpr float kSqrt2OverPi = 0.7978845608028654F;
constexpr float kGeluCubic = 0.044715F;
constexpr float kTurns = 64;  // tanh_error changes sign every 0.05
constexpr float kSqrtHalf = 0.7071067811865476F;

float activated(const Epilogue& e, float z) {
  const float tanh_error = e.tanh_error;
  switch (e.activation) {
    case Activation::none:
      return z;
    case Activation::relu:
      return z >= 0 || std::isnan(z) ? z : e.leak == 0 ? 0.0F : e.leak * z;  // NaN propagates
    case Activation::gelu_tanh: {
      const float cubic = z + kGeluCubic * (z * z * z);
      auto t = static_cast<float>(std::tanh(static_cast<double>(kSqrt2OverPi * cubic)));
      if (tanh_error != 0) {
        t += tanh_error * std::sin(kTurns * z);
      }
      return 0.5F * z * (1.0F + t);
    }
    case Activation::gelu_erf: {
      const auto t = static_cast<float>(std::erf(static_cast<double>(kSqrtHalf * z)));
      return 0.5F * z * (1.0F + t);
    }
  }
  return z;
}

/// One task: some rows, with buffers for one row of C and of the result.
class Rows {
 public:
  Rows(const Epilogue& epilogue, std::int64_t n, std::span<const float> bias)
      : e_(epilogue),
        n_(n),
        bias_(bias),
        c_(static_cast<std::size_t>(epilogue.c ? n : 0)),
        z_(static_cast<std::size_t>(n)) {}

  /// Row `i` from its accumulators, which start at `acc`, `stride` apart; returns max |z|.
  float run(std::int64_t i, const float* acc, std::int64_t stride, std::byte* to) {
    load_c(i);
    float amax = 0;
    for (std::int64_t j = 0; j < n_; ++j) {
      const auto at = static_cast<std::size_t>(j);
      float z = e_.scale == 0 ? 0 : e_.scale * acc[j * stride];  // BLAS does not read A and B then
      z = e_.product_format ? with_c(rounded(with_bias(z, at), e_.product_format), at)
                            : with_bias(rounded(with_c(z, at), e_.sum_format), at);
      z_[at] = static_cast<double>(activated(e_, z));
    }
    if (e_.perturbation) {
      e_.perturbation->apply(e_.first_row + i, z_);
    }
    for (double& value : z_) {
      const auto z = static_cast<float>(value);
      amax = std::fmax(amax, std::fabs(z));
      value = finished(e_.d_scale ? static_cast<double>(z * *e_.d_scale) : value);
    }
    const auto bytes = static_cast<std::size_t>(n_ * core::dtype_info(e_.output).storage_bytes);
    core::encode(z_, e_.output, {to, bytes}, e_.overflow, e_.rounding);
    return amax;
  }

 private:
  void load_c(std::int64_t i) {
    if (e_.c) {
      MatrixView row = *e_.c;
      row.data += i * row.row_stride * core::dtype_info(row.dtype).storage_bytes;
      row.rows = 1;
      load_matrix(row, {}, {}, {}, c_);
    }
  }

  [[nodiscard]] float with_c(float z, std::size_t at) const { return e_.c ? std::fma(e_.beta, c_[at], z) : z; }
  [[nodiscard]] float with_bias(float z, std::size_t at) const { return bias_.empty() ? z : z + bias_[at]; }
  [[nodiscard]] static float rounded(float z, std::optional<core::Dtype> format) {
    return format ? static_cast<float>(core::round_to(static_cast<double>(z), *format)) : z;
  }

  [[nodiscard]] double finished(double value) const {
    if (e_.detour) {
      value = core::round_to(value, *e_.detour);
    }
    if (e_.flushes_subnormals && std::fabs(value) < std::ldexp(1.0, core::dtype_info(e_.output).emin)) {
      value = std::copysign(0.0, value);
    }
    return e_.drops_nan && std::isnan(value) ? 0.0 : value;
  }

  const Epilogue& e_;
  std::int64_t n_;
  std::span<const float> bias_;
  std::vector<float> c_;
  std::vector<double> z_;
};

}  // namespace

float apply_epilogue(const Epilogue& epilogue, std::span<const float> acc, std::int64_t m, std::int64_t n,
                     const OutputView& d, bool transposed) {
  if (acc.size() != static_cast<std::size_t>(m * n) || (transposed && m != n)) {
    throw core::InternalError("apply_epilogue: sizes do not match");
  }
  if (acc.empty()) {
    return 0;
  }
  std::vector<float> bias;
  if (epilogue.bias) {
    bias.resize(static_cast<std::size_t>(n));
    load_matrix(*epilogue.bias, {}, {}, {}, bias);
  }
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kElementsPerTask / n);
  const auto tasks = static_cast<std::size_t>((m + rows_per_task - 1) / rows_per_task);
  std::vector<float> amax(tasks, 0);
  const std::int64_t row_bytes = d.row_stride * core::dtype_info(epilogue.output).storage_bytes;
  core::parallel_for(tasks, [&](std::size_t task) {
    Rows rows(epilogue, n, bias);
    const std::int64_t begin = static_cast<std::int64_t>(task) * rows_per_task;
    for (std::int64_t i = begin; i < std::min(begin + rows_per_task, m); ++i) {
      const float* from = acc.data() + (transposed ? i : i * n);
      amax[task] = std::max(amax[task], rows.run(i, from, transposed ? n : 1, d.data + i * row_bytes));
    }
  });
  return std::ranges::max(amax);
}

}  // namespace numcheck::model
