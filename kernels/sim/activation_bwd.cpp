#include <array>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "kernels/sim/activation_faults.hpp"
#include "kernels/sim/activation_math.hpp"
#include "kernels/sim/activation_output.hpp"
#include "kernels/sim/bindings.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::size_t kChunk = 4096;

op::ActivationParams params_of(const Call& call) {
  return op::from_params<op::ActivationParams>(call.c->params);
}

constexpr std::array kFaults = {
    kErfForTanh,
    kTanhForErf,
    kGeluConstant,
    kFactor2Missing,
    kBf16Intermediate,
    kDerivativeSign,
    OpFault{{"value_for_derivative", "dx is dy f(x)"}},
    kHalvesSwapped,
    kClampMissing,
    kBlockScaleFloor,
    kBlockScaleOff,
    kNeighbourScale,
    kFirstRoundingMissing,
    kColumnwiseFromRowwise,
};

/// For one element of the forward output: writes one or two elements of dx.
struct Backward {
  ActivationMath math;
  bool gated = false;
  bool swapped = false;
  bool value_for_derivative = false;

  void operator()(float dy, const float* x, float* dx, std::size_t hidden) const {
    const auto slope = [this](float a) { return value_for_derivative ? math.value(a) : math.derivative(a); };
    if (!gated) {
      *dx = slope(*x) * dy;
      return;
    }
    const std::size_t first = swapped ? hidden : 0;
    const std::size_t second = hidden - first;
    const float a = x[first];
    const float b = x[second];
    dx[first] = slope(a) * dy * math.factor(b);
    dx[second] = math.factor_follows(b) ? dy * math.value(a) : 0.0F;
  }
};

void run(const op::ActivationParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const Backward backward{activation_math(p, fault), op::activation_kind(p.kind).gated, fault == "halves_swapped",
                          fault == "value_for_derivative"};
  const std::vector<float> dy = read_floats(ports, "dy");
  const std::vector<float> x = read_floats(ports, "x");
  std::vector<float> dx(x.size());
  const auto hidden = static_cast<std::size_t>(p.hidden);
  core::parallel_chunks(dy.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t at = backward.gated ? i / hidden * 2 * hidden + i % hidden : i;
      backward(dy[i], x.data() + at, dx.data() + at, hidden);
    }
  });
  write_activation(ports, "dx", op::kMxfp8Dx, std::move(dx), fault);
}

}  // namespace

const Binding& activation_bwd() {
  static const std::vector<FaultInfo> faults = with_store_faults(kFaults);
  static const SimBinding binding{
      {"sim", "activation_bwd"},
      [](const Call&, const SimContext&) { return std::string(); },
      [](const Call& call, const SimContext&) {
        return std::vector<Algorithm>{host_algorithm(
            call, "FP32, element by element",
            [p = params_of(call), fault = call.inject](std::span<const PortMemory> ports) { run(p, ports, fault); })};
      },
      [] { return std::span<const FaultInfo>(faults); },
      [](const Call& call, const SimContext&) { return obstacle_of(kFaults, call); }};
  return binding;
}

}  // namespace numcheck::kernels::sim
