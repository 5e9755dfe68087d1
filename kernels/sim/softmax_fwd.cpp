#include "op/softmax_fwd.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/op_faults.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr float kReplacement = -10000.0F;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

op::SoftmaxFwdParams params_of(const Call& call) {
  return op::from_params<op::SoftmaxFwdParams>(call.c->params);
}

float to_bf16(float x) {
  return static_cast<float>(core::round_to(static_cast<double>(x), core::Dtype::bf16));
}

/// The scale that the kernel multiplies by.
float rounded_scale(const op::SoftmaxFwdParams& p, core::Dtype format) {
  const auto scale = static_cast<float>(p.scale);
  return p.scale_rounding == "ideal" ? scale : static_cast<float>(core::round_to(static_cast<double>(scale), format));
}

std::string needs_mask(const Call& call) {
  const op::SoftmaxFwdParams p = params_of(call);
  return p.mask == "none" ? "nothing is masked" : p.sk < 2 ? "a row has only one element" : "";
}

std::string needs_both_corners(const Call& call) {
  const op::SoftmaxFwdParams p = params_of(call);
  return p.mask != "causal_bottom_right" ? "the mask does not end in the bottom right corner"
         : p.sq == p.sk                  ? "a square matrix has only one diagonal"
                                         : "";
}

std::string needs_masked_row(const Call& call) {
  const op::SoftmaxFwdParams p = params_of(call);
  const bool has_one = (p.mask == "arbitrary" && p.sq > 1) || (p.mask == "causal_bottom_right" && p.sq > p.sk);
  return has_one ? "" : "no row is entirely masked";
}

std::string needs_rounded_scale(const Call& call) {
  const op::SoftmaxFwdParams p = params_of(call);
  return rounded_scale(p, call.c->mode->first) == static_cast<float>(p.scale) ? "the scale is not rounded" : "";
}

std::string needs_short_format(const Call& call) {
  return call.c->mode->first == core::Dtype::fp32 ? "exponentials are FP32 numbers anyway" : "";
}

std::string needs_several(const Call& call) {
  return params_of(call).sk < 2 ? "a row has only one element" : "";
}

constexpr std::array kFaults = {
    OpFault{{"softmax_scale_missing", "the scores are not scaled"},
            [](const Call& call) { return std::string(params_of(call).scale == 1 ? "the scale is 1" : ""); }},
    OpFault{{"softmax_scale_1_01", "the scale is 1.01 times the requested one"},
            [](const Call& call) { return std::string(params_of(call).scale == 0 ? "the scale is 0" : ""); }},
    OpFault{{"softmax_scale_fp32", "the scale is not rounded to the tensor's format"}, &needs_rounded_scale},
    OpFault{{"bf16_exponent_argument", "the arguments of the exponentials are rounded to BF16"}, &needs_several},
    OpFault{{"rounded_exponentials", "the exponentials are rounded to the tensor's format before they are divided"},
            &needs_short_format},
    OpFault{{"no_max_subtraction", "the maximum is not subtracted from the scores"}},
    OpFault{{"mask_off_by_one", "the mask is shifted by one column"}, &needs_mask},
    OpFault{{"top_left_mask", "the diagonal starts in the top left corner"}, &needs_both_corners},
    OpFault{{"masked_row_kept", "an entirely masked row is not set to zero"}, &needs_masked_row},
    OpFault{{"last_column_missing", "the last column is left out of the maximum and the sum"}, &needs_several},
    OpFault{{"bf16_row_sum", "the sum of a row is kept in BF16"}, &needs_several},
};

/// What the device does with every row.
struct Kernel {
  op::SoftmaxFwdParams p;
  float scale = 1;
  std::string fault;
  core::Dtype format = core::Dtype::fp32;

  [[nodiscard]] bool has(std::string_view name) const { return fault == name; }
  [[nodiscard]] bool replaces() const { return p.masked_value == "te"; }
  [[nodiscard]] bool causal() const { return p.mask == "causal" || p.mask == "causal_bottom_right"; }

  /// Elements of row i that count.
  [[nodiscard]] std::size_t length(std::int64_t i) const {
    std::int64_t last = p.sk - 1;
    if (causal()) {
      last = p.mask == "causal" || has("top_left_mask") ? i : i + p.sk - p.sq;
      last += has("mask_off_by_one") ? 1 : 0;
    }
    return static_cast<std::size_t>(std::clamp<std::int64_t>(last + 1, 0, p.sk));
  }

  [[nodiscard]] float score(const float* x, const float* mask, std::size_t j) const {
    std::size_t at = j;
    if (has("mask_off_by_one") && j + 1 < static_cast<std::size_t>(p.sk)) {
      at = j + 1;
    }
    if (mask != nullptr && mask[at] == 1.0F) {
      return replaces() ? kReplacement : -kInfinity;
    }
    return x[j] * scale;
  }

  [[nodiscard]] float exponential(float score, float maximum) const {
    const float argument = has("no_max_subtraction") ? score : score - maximum;
    return std::exp(has("bf16_exponent_argument") ? to_bf16(argument) : argument);
  }

  [[nodiscard]] float sum(const float* terms, std::size_t count) const {
    if (!has("bf16_row_sum")) {
      return block_sum(count, [terms](std::size_t j) { return terms[j]; });
    }
    float total = 0;
    for (std::size_t j = 0; j < count; ++j) {
      total = to_bf16(total + terms[j]);
    }
    return total;
  }

  void row(std::int64_t i, const float* x, const float* mask, float* y) const {
    const auto size = static_cast<std::size_t>(p.sk);
    const std::size_t count = length(i);
    const bool padded = p.mask == "causal_bottom_right" && replaces();
    const std::size_t others = padded ? std::bit_ceil(size) - count : 0;
    float maximum = others > 0 ? kReplacement : -kInfinity;
    const std::size_t seen = has("last_column_missing") && count == size ? count - 1 : count;
    for (std::size_t j = 0; j < count; ++j) {
      y[j] = score(x, mask, j);
      maximum = j < seen ? std::fmax(maximum, y[j]) : maximum;
    }
    const bool may_vanish = p.mask == "arbitrary" || p.mask == "causal_bottom_right";
    const bool none_left = maximum == -kInfinity && may_vanish && !replaces();
    const float shift = none_left ? 0 : maximum;
    std::transform(y, y + count, y, [&](float t) { return exponential(t, shift); });
    const float total = sum(y, seen) + (others > 0 ? static_cast<float>(others) * exponential(kReplacement, shift) : 0);
    const bool only_masked = mask != nullptr && replaces() && maximum == kReplacement && !std::isnan(total);
    const bool zero = only_masked || (none_left && total == 0);
    const bool kept = has("masked_row_kept");
    for (std::size_t j = 0; j < count; ++j) {
      const float term =
          has("rounded_exponentials") ? static_cast<float>(core::round_to(static_cast<double>(y[j]), format)) : y[j];
      y[j] = zero && !kept ? term * 0.0F : term / total;
    }
    const float beyond = kept && count == 0 ? 1 / static_cast<float>(size) : 0;
    std::fill(y + count, y + size, beyond);
  }
};

void run(const Kernel& kernel, std::span<const PortMemory> ports) {
  const op::SoftmaxFwdParams& p = kernel.p;
  const std::vector<float> x = read_floats(ports, "x");
  const std::vector<float> mask = p.mask == "arbitrary" ? read_floats(ports, "mask") : std::vector<float>();
  std::vector<float> y(x.size());
  const auto sq = static_cast<std::size_t>(p.sq);
  const auto sk = static_cast<std::size_t>(p.sk);
  core::parallel_for(x.size() / sk, [&](std::size_t row) {
    const std::size_t i = row % sq;
    const std::size_t batch = row / (sq * static_cast<std::size_t>(p.heads));
    kernel.row(static_cast<std::int64_t>(i), x.data() + row * sk,
               mask.empty() ? nullptr : mask.data() + (batch * sq + i) * sk, y.data() + row * sk);
  });
  write_floats(ports, "y", y, kernel.fault);
}

Kernel kernel_of(const Call& call) {
  Kernel kernel{params_of(call), 1, call.inject, call.c->mode->first};
  kernel.scale = kernel.has("softmax_scale_missing") ? 1
                 : kernel.has("softmax_scale_fp32")  ? static_cast<float>(kernel.p.scale)
                                                     : rounded_scale(kernel.p, call.c->mode->first);
  kernel.scale *= kernel.has("softmax_scale_1_01") ? 1.01F : 1.0F;
  return kernel;
}

}  // namespace

const Binding& softmax_fwd() {
  static const std::vector<FaultInfo> faults = with_store_faults(kFaults);
  static const SimBinding binding{
      {"sim", "softmax_fwd"},
      [](const Call&, const SimContext&) { return std::string(); },
      [](const Call& call, const SimContext&) {
        return std::vector<Algorithm>{
            host_algorithm(call, "FP32, each row summed by 128 lanes and a tree",
                           [kernel = kernel_of(call)](std::span<const PortMemory> ports) { run(kernel, ports); })};
      },
      [] { return std::span<const FaultInfo>(faults); },
      [](const Call& call, const SimContext&) { return obstacle_of(kFaults, call); }};
  return binding;
}

}  // namespace numcheck::kernels::sim
