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

constexpr std::array kFaults = {kErfForTanh,       kTanhForErf,     kGeluConstant,         kFactor2Missing,
                                kBf16Intermediate, kHalvesSwapped,  kClampMissing,         kBlockScaleFloor,
                                kBlockScaleOff,    kNeighbourScale, kFirstRoundingMissing, kColumnwiseFromRowwise};

void run(const op::ActivationParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const ActivationMath math = activation_math(p, fault);
  const bool gated = op::activation_kind(p.kind).gated;
  const bool swapped = fault == "halves_swapped";
  const std::vector<float> x = read_floats(ports, "x");
  const auto hidden = static_cast<std::size_t>(p.hidden);
  std::vector<float> y(static_cast<std::size_t>(p.rows) * hidden);
  core::parallel_chunks(y.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (!gated) {
        y[i] = math.value(x[i]);
        continue;
      }
      const std::size_t row = i / hidden * 2 * hidden;
      const std::size_t a = row + i % hidden + (swapped ? hidden : 0);
      const std::size_t b = row + i % hidden + (swapped ? 0 : hidden);
      y[i] = math.value(x[a]) * math.factor(x[b]);
    }
  });
  write_activation(ports, "y", op::kMxfp8Y, std::move(y), fault);
}

}  // namespace

const Binding& activation_fwd() {
  static const std::vector<FaultInfo> faults = with_store_faults(kFaults);
  static const SimBinding binding{
      {"sim", "activation_fwd"},
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
