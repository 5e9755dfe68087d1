#include "op/multi_tensor_scale.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <cuda_runtime_api.h>

#include "core/dtype.hpp"
#include "kernels/cuda_support/check.hpp"
#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

using P = op::MultiTensorScaleParams;

std::string obstacle(const Context& context, const Call& call) {
  if (std::string layout = layout_obstacle(call); !layout.empty()) {
    return layout;
  }
  return context.library.lacks({kMultiTensorScale.name});
}

/// The lists that the function takes: amaxes, scales and scale_invs of all tensors.
struct Lists {
  std::array<std::vector<Handle>, 3> handles;
  std::array<Handle*, 3> lists{};

  Lists(Operands& o, const P& p) {
    constexpr std::array<std::string_view, 3> kPorts = {"amaxes", "scales", "scale_invs"};
    for (std::size_t i = 0; i < kPorts.size(); ++i) {
      auto* data = reinterpret_cast<float*>(o.data(kPorts.at(i)));
      for (std::int64_t tensor = 0; tensor < p.tensors; ++tensor) {
        handles.at(i).push_back(o.tensor(data + tensor * p.elements, kFloat32, {p.elements}).handle());
      }
      lists.at(i) = handles.at(i).data();
    }
  }
};

Enqueue prepare(Operands& o, const P& p) {
  const auto lists = std::make_shared<Lists>(o, p);
  Handle skip = o.tensor(o.extra(), kInt32, {1}).handle();  // the kernel does not read it: it passes infinities on
  const core::Dtype format = core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3);
  const auto largest = static_cast<float>(core::dtype_info(format).max_finite);
  return [=, &o](Handle) {
    cuda_support::check(cudaMemsetAsync(o.extra(), 0, sizeof(std::int32_t), o.stream()), "cudaMemsetAsync");
    o.context().library.call(kMultiTensorScale, static_cast<int>(p.chunk), skip, lists->lists.data(),
                             lists->lists.size(), static_cast<std::size_t>(p.tensors), largest,
                             static_cast<int>(p.power_of_two), static_cast<float>(p.epsilon), o.stream());
  };
}

Algorithm algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<P>(call.c->params);
  return single_call(context, kMultiTensorScale.name, [p](Operands& o) { return prepare(o, p); }, kAlignment);
}

}  // namespace

// nvte_multi_tensor_compute_scale_and_scale_inv_cuda, the same signature since 2.4.
const Binding& multi_tensor_scale() {
  static const TeBinding binding{{"transformer_engine", "multi_tensor_scale"}, &obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
