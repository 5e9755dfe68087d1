#include "op/softmax_bwd.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/op_faults.hpp"

namespace numcheck::kernels::sim {
namespace {

op::SoftmaxBwdParams params_of(const Call& call) {
  return op::from_params<op::SoftmaxBwdParams>(call.c->params);
}

float rounded_scale(const Call& call) {
  const auto scale = static_cast<double>(static_cast<float>(params_of(call).scale));
  return static_cast<float>(core::round_to(scale, call.c->mode->first));
}

bool is_causal(const op::SoftmaxBwdParams& p) {
  return p.mask == "causal" || p.mask == "causal_bottom_right";
}

std::string needs_several(const Call& call) {
  return params_of(call).sk < 2 ? "a row has only one element" : "";
}

constexpr std::array kFaults = {
    OpFault{{"softmax_scale_missing", "the gradient is not scaled"},
            [](const Call& call) { return std::string(params_of(call).scale == 1 ? "the scale is 1" : ""); }},
    OpFault{{"softmax_scale_rounded", "the scale is rounded to the tensor's format, as in the forward pass"},
            [](const Call& call) {
              const bool exact = rounded_scale(call) == static_cast<float>(params_of(call).scale);
              return std::string(exact ? "the scale is exact in the format" : "");
            }},
    OpFault{{"row_sum_missing", "the term of the row's sum is missing"}},
    OpFault{{"sum_of_dy", "the sum is over dy alone, not over dy y"}, &needs_several},
    OpFault{{"last_column_missing", "the last column is left out of the sum"}, &needs_several},
    OpFault{{"bf16_row_sum", "the sum of a row is kept in BF16"}, &needs_several},
    OpFault{{"mask_off_by_one", "the diagonal itself is left out"},
            [](const Call& call) { return std::string(is_causal(params_of(call)) ? "" : "there is no diagonal"); }},
};

float to_bf16(float x) {
  return static_cast<float>(core::round_to(static_cast<double>(x), core::Dtype::bf16));
}

/// What the device does with every row.
struct Kernel {
  op::SoftmaxBwdParams p;
  float scale = 1;
  std::string fault;

  [[nodiscard]] bool has(std::string_view name) const { return fault == name; }

  /// Elements of row i that count.
  [[nodiscard]] std::size_t length(std::int64_t i) const {
    if (!is_causal(p)) {
      return static_cast<std::size_t>(p.sk);
    }
    const std::int64_t last = (p.mask == "causal" ? i : i + p.sk - p.sq) - (has("mask_off_by_one") ? 1 : 0);
    return static_cast<std::size_t>(std::clamp<std::int64_t>(last + 1, 0, p.sk));
  }

  [[nodiscard]] float sum(const float* dy, const float* y, std::size_t count) const {
    const auto term = [&](std::size_t j) { return has("sum_of_dy") ? dy[j] : dy[j] * y[j]; };
    if (has("row_sum_missing")) {
      return 0;
    }
    if (!has("bf16_row_sum")) {
      return block_sum(count, term);
    }
    float total = 0;
    for (std::size_t j = 0; j < count; ++j) {
      total = to_bf16(total + term(j));
    }
    return total;
  }

  void row(std::int64_t i, const float* dy, const float* y, float* dx) const {
    const auto size = static_cast<std::size_t>(p.sk);
    const std::size_t count = length(i);
    const float total = sum(dy, y, has("last_column_missing") && count == size ? count - 1 : count);
    for (std::size_t j = 0; j < count; ++j) {
      dx[j] = scale * (dy[j] * y[j] - y[j] * total);
    }
    std::fill(dx + count, dx + size, 0.0F);
  }
};

void run(const Kernel& kernel, std::span<const PortMemory> ports) {
  const std::vector<float> dy = read_floats(ports, "dy");
  const std::vector<float> y = read_floats(ports, "y");
  std::vector<float> dx(dy.size());
  const auto sk = static_cast<std::size_t>(kernel.p.sk);
  core::parallel_for(dy.size() / sk, [&](std::size_t row) {
    kernel.row(static_cast<std::int64_t>(row) % kernel.p.sq, dy.data() + row * sk, y.data() + row * sk,
               dx.data() + row * sk);
  });
  write_floats(ports, "dx", dx, kernel.fault);
}

Kernel kernel_of(const Call& call) {
  Kernel kernel{params_of(call), 1, call.inject};
  kernel.scale = kernel.has("softmax_scale_missing")   ? 1
                 : kernel.has("softmax_scale_rounded") ? rounded_scale(call)
                                                       : static_cast<float>(kernel.p.scale);
  return kernel;
}

}  // namespace

const Binding& softmax_bwd() {
  static const std::vector<FaultInfo> faults = with_store_faults(kFaults);
  static const SimBinding binding{
      {"sim", "softmax_bwd"},
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
