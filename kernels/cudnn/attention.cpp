#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/cudnn/attention_gates.hpp"
#include "kernels/cudnn/attention_graph.hpp"
#include "kernels/cudnn/binding.hpp"
#include "kernels/cudnn/bindings.hpp"
#include "kernels/cudnn/engines.hpp"
#include "kernels/harness/mask_probe.hpp"
#include "op/attention_fp8.hpp"
#include "op/attention_fwd.hpp"

namespace numcheck::kernels::cudnn {
namespace {

AttentionGate gate_of(const Context& context, const Call& call) {
  return attention_gate(op::from_params<op::AttentionParams>(call.c->params),
                        {.forward = call.c->op == &op::attention_fwd(),
                         .version = context.library.get_version(),
                         .sm = context.device.info().sm,
                         .storage = call.c->mode->first});
}

[[noreturn]] void refuse(const Context& context, const std::string& gate, const std::string& reason) {
  const std::string version = context.library.version();
  throw NotSupported(gate.empty() ? fmt::format("cuDNN {} has no engine for this case: {}", version, reason)
                                  : fmt::format("cuDNN {} refuses the case, as documented: {}; its own words: {}",
                                                version, gate, reason));
}

/// FP32 tensors are multiplied on tensor cores, whatever precision the mode asks for.
[[noreturn]] void refuse_format(const Context& context, const Call& call) {
  std::string answer;
  try {
    const std::shared_ptr<Graph> graph = attention_graph(context.library, call, AttentionForm::composite);
    graph->finalize(context.handle);
    const Candidates offered = candidates(*graph, {context.handle, nullptr}, HeuristicsMode::a);
    if (offered.list.empty()) {
      answer = offered.refusal;
    } else {
      const EngineText text = describe(offered.list.front());
      answer = fmt::format("accepted, by {} (numerical notes: {})", text.label, text.details.at(2).second);
    }
  } catch (const CudnnError& error) {
    answer = error.reason();
  }
  throw NotSupported(fmt::format(
      "cuDNN's attention multiplies on tensor cores, so the mode {} cannot be had: set mode to bf16 or fp16. "
      "What cuDNN {} says to FP32 tensors: {}",
      call.c->mode->name, context.library.version(), answer));
}

/// The pattern stores dk and dv of each head before it adds those of heads that share keys, as NVIDIA's frontend does.
/// Engines store gradients of scores times the scale before dbias is made of them, keep dbias in its format while they add
/// sequences to it, and approximate tanh (9.14, H200).
model::AttentionRounding early_rounding(const Call& call) {
  const auto p = op::from_params<op::AttentionParams>(call.c->params);
  const bool backward = call.c->op != &op::attention_fwd();
  return {.head_gradients = backward && p.key_heads() < p.heads && !op::has_scales(*call.c->mode),
          .scaled_bias = backward && p.has_bias_tensor(),
          .bias_sum = backward && p.has_bias_tensor() && p.batches > 1,
          .approximate_tanh = p.softcap != 0};
}

Algorithm algorithm_of(const Context& context, const Call& call, std::shared_ptr<const Graph> graph, AttentionForm form,
                       Plan plan) {
  plan.text.label = fmt::format("cudnn {}, {}", form_name(form), plan.text.label.substr(std::string("cudnn ").size()));
  plan.text.details.emplace_back("form", form_name(form));
  plan.text.details.emplace_back("cudnn", context.library.version());
  const std::size_t bytes = graph->auxiliary_bytes() + plan.workspace_bytes;
  // A std::function must be copyable.
  const auto shared = std::make_shared<const Descriptor>(std::move(plan.descriptor));
  return {std::move(plan.text.label),
          std::move(plan.text.details),
          bytes,
          [context, graph = std::move(graph), shared](std::span<const PortMemory> ports, std::byte* workspace) {
            context.device.use();
            graph->write_auxiliaries(context.device.memory(), workspace);
            const Descriptor pack = graph->variant_pack(ports, workspace);
            return context.device.timed([&] {
              context.library.check(context.library.backend_execute(context.handle, shared->get(), pack.get()),
                                    "cudnnBackendExecute");
            });
          },
          {.attention = early_rounding(call)}};
}

/// Plans of one form; the refusal if there are none.
struct FormPlans {
  std::shared_ptr<const Graph> graph;
  Plans plans;
};

FormPlans plans_of(const Context& context, const Call& call, AttentionForm form, std::size_t limit) try {
  const std::shared_ptr<Graph> graph = attention_graph(context.library, call, form);
  graph->finalize(context.handle);
  return {graph, make_plans(*graph, {context.handle, nullptr}, limit, Engines::deterministic)};
} catch (const CudnnError& error) {
  if (!error.is_refusal()) {
    throw;
  }
  return {nullptr, {{}, error.reason()}};
}

/// What else is known about how the case is run.
void add_details(const Context& context, const Call& call, const std::string& gate, EngineText& text) {
  if (gets_full_lengths(call, context.library.get_version())) {
    text.details.emplace_back("lengths", "full");
  }
  if (!gate.empty()) {
    text.details.emplace_back("documents", gate);
  }
}

std::vector<Algorithm> algorithms(const Context& context, const Call& call) {
  context.device.use();
  const auto [gate, not_asked] = gate_of(context, call);
  if (call.c->mode->first == core::Dtype::fp32) {
    refuse_format(context, call);
  }
  if (!not_asked.empty()) {
    throw NotSupported(fmt::format("cuDNN {} is not asked: {}", context.library.version(), not_asked));
  }
  const std::size_t limit = requested_count(call.c->algorithms);
  std::vector<Algorithm> list;
  std::string refusal;
  for (const AttentionForm form : attention_forms(call, context.library.get_version())) {
    if (list.size() == limit) {
      break;
    }
    FormPlans found = plans_of(context, call, form, limit - list.size());
    if (refusal.empty()) {
      refusal = found.plans.refusal;
    }
    const std::string_view unordered = unordered_sum(call, form);
    for (Plan& plan : found.plans.list) {
      add_details(context, call, gate, plan.text);
      if (!unordered.empty()) {
        plan.text.details.emplace_back("repeatable", fmt::format("no: {} is added up atomically", unordered));
      }
      list.push_back(algorithm_of(context, call, found.graph, form, std::move(plan)));
      if (!unordered.empty()) {
        list.back().unordered.emplace_back(unordered);
      }
    }
  }
  if (list.empty()) {
    refuse(context, gate, refusal);
  }
  return list;
}

/// The library is asked about every case: its graphs can say all that the op can.
std::string no_obstacle(const Call&) {
  return {};
}

}  // namespace

const Binding& attention_fwd() {
  static const CudnnBinding binding{{"cudnn", "attention_fwd"}, &no_obstacle, &algorithms};
  return binding;
}

const Binding& attention_bwd() {
  static const CudnnBinding binding{{"cudnn", "attention_bwd"}, &no_obstacle, &algorithms};
  return binding;
}

const Binding& attention_dropout() {
  static const CudnnBinding binding{
      {"cudnn", "attention_dropout"}, &no_obstacle, [](const Context& context, const Call& call) {
        return std::vector<Algorithm>{
            harness::probed_mask(context.device.memory(), call,
                                 [&context](const Call& forward) { return algorithms(context, forward).front(); })};
      }};
  return binding;
}

}  // namespace numcheck::kernels::cudnn
