#include "op/fp8_recipe.hpp"

#include <string>

#include "data/delayed_scaling.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/fp8_recipe_kernel.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

std::string obstacle(const Call& call) {
  return op::from_params<op::Fp8RecipeParams>(call.c->params).modules <= kMostModules
             ? std::string()
             : "te-numcheck's own kernel updates at most " + std::to_string(kMostModules) + " modules";
}

float* floats(std::span<const PortMemory> ports, std::string_view name) {
  return static_cast<float*>(address_of(ports, name));
}

Fp8RecipeLaunch launch_of(const op::Fp8RecipeParams& p, std::span<const PortMemory> ports, std::byte* workspace) {
  const data::DelayedScaling rules = data::delayed_scaling_of(p);
  Fp8RecipeLaunch launch;
  launch.steps = p.steps;
  launch.modules = p.modules;
  launch.history_length = p.history;
  launch.tensors = p.tensors;
  launch.target = rules.target();
  launch.most_recent = rules.choice == data::AmaxChoice::most_recent;
  launch.leaves_idle_alone = rules.idle == data::IdleTensor::left_alone;
  launch.amaxes = floats(ports, "amaxes");
  launch.reduced = floats(ports, "reduced");
  launch.history = floats(ports, "history");
  launch.scale = floats(ports, "scale");
  launch.scales = floats(ports, "scales");
  launch.scale_invs = floats(ports, "scale_invs");
  launch.new_history = floats(ports, "new_history");
  launch.other_history = reinterpret_cast<float*>(workspace);
  return launch;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::Fp8RecipeParams>(call.c->params);
  const std::size_t history_bytes = static_cast<std::size_t>(p.scales() * p.history) * sizeof(float);
  return {"own kernel",
          {{"order", "one update of all modules per step"}},
          history_bytes,
          [&device, p](std::span<const PortMemory> ports, std::byte* workspace) {
            device.use();
            return device.timed([&] {
              cuda_support::check(launch_fp8_recipe(launch_of(p, ports, workspace), device.stream()),
                                  "te-numcheck's kernel for delayed scaling");
            });
          }};
}

}  // namespace

const Binding& fp8_recipe() {
  static const CudaBinding binding{{"cuda", "fp8_recipe"}, &obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
