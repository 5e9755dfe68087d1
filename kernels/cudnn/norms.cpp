#include <utility>

#include <fmt/format.h>

#include "kernels/cudnn/binding.hpp"
#include "kernels/cudnn/bindings.hpp"
#include "kernels/cudnn/engines.hpp"
#include "kernels/cudnn/norm_graph.hpp"

namespace numcheck::kernels::cudnn {
namespace {

[[noreturn]] void refuse(const Library& library, const std::string& reason) {
  throw NotSupported(fmt::format("cuDNN {} has no engine for this case: {}", library.version(), reason));
}

Algorithm algorithm_of(const Context& context, std::shared_ptr<const Graph> graph, Plan plan) {
  plan.text.details.emplace_back("cudnn", context.library.version());
  // A std::function must be copyable.
  const auto shared = std::make_shared<const Descriptor>(std::move(plan.descriptor));
  return {std::move(plan.text.label), std::move(plan.text.details), plan.workspace_bytes,
          [context, graph = std::move(graph), shared](std::span<const PortMemory> ports, std::byte* workspace) {
            context.device.use();
            const Descriptor pack = graph->variant_pack(ports, workspace);
            return context.device.timed([&] {
              context.library.check(context.library.backend_execute(context.handle, shared->get(), pack.get()),
                                    "cudnnBackendExecute");
            });
          }};
}

std::vector<Algorithm> algorithms(const Context& context, const Call& call) try {
  context.device.use();
  const std::shared_ptr<Graph> graph = norm_graph(context.library, call);
  graph->finalize(context.handle);
  Plans plans = make_plans(*graph, {context.handle, nullptr}, requested_count(call.c->algorithms));
  if (plans.list.empty()) {
    refuse(context.library, plans.refusal);
  }
  std::vector<Algorithm> list;
  for (Plan& plan : plans.list) {
    list.push_back(algorithm_of(context, graph, std::move(plan)));
  }
  return list;
} catch (const CudnnError& error) {
  if (!error.is_refusal()) {
    throw;
  }
  refuse(context.library, error.reason());
}

}  // namespace

const Binding& layernorm_fwd() {
  static const CudnnBinding binding{{"cudnn", "layernorm_fwd"}, &norm_obstacle, &algorithms};
  return binding;
}

const Binding& layernorm_bwd() {
  static const CudnnBinding binding{{"cudnn", "layernorm_bwd"}, &norm_obstacle, &algorithms};
  return binding;
}

const Binding& rmsnorm_fwd() {
  static const CudnnBinding binding{{"cudnn", "rmsnorm_fwd"}, &norm_obstacle, &algorithms};
  return binding;
}

const Binding& rmsnorm_bwd() {
  static const CudnnBinding binding{{"cudnn", "rmsnorm_bwd"}, &norm_obstacle, &algorithms};
  return binding;
}

}  // namespace numcheck::kernels::cudnn
