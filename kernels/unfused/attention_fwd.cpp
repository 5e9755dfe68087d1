#include "op/attention_fwd.hpp"

#include <memory>

#include "kernels/contract/ports.hpp"
#include "kernels/cuda_support/check.hpp"
#include "kernels/unfused/attention_setup.hpp"
#include "kernels/unfused/binding.hpp"
#include "kernels/unfused/bindings.hpp"
#include "model/eager_attention.hpp"

namespace numcheck::kernels::unfused {
namespace {

/// Products, row-major, for each sequence and head:
///
///   scores   sq x sk = scale q (sq x d) k^T (k: sk x d)        scale 1 with a pre_scale bias
///   output   sq x dv = weights after dropout (sq x sk) v (sk x dv)
///
/// Scores and weights share their memory.
class Forward {
 public:
  Forward(const cublas_support::CublasLt& lt, int sm, const op::AttentionParams& p, const op::Mode& mode)
      : rules_(rules_of(p, mode)),
        stacks_(p),
        scores_(lt, mode, sm, "q k^T",
                stacks_.product({stacks_.queries()}, {stacks_.keys(), true}, stacks_.scores(),
                                p.bias == "pre_scale" ? 1 : p.factor())),
        output_(lt, mode, sm, "p v", stacks_.product({stacks_.scores()}, {stacks_.values()}, stacks_.outputs(), 1)),
        weights_at_(regions_.add(p.batches * p.heads * p.sq * p.sk, core::dtype_info(mode.first).storage_bytes)),
        workspace_at_(add_workspace(regions_, {&scores_, &output_})) {}

  [[nodiscard]] const BatchedProduct& scores() const noexcept { return scores_; }
  [[nodiscard]] const BatchedProduct& output() const noexcept { return output_; }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return regions_.bytes(); }

  void enqueue(std::span<const PortMemory> ports, std::byte* memory, cudaStream_t stream) const {
    const auto at = [&ports](std::string_view name) { return first_element(&port_memory(ports, name)); };
    const auto statistic = [&ports](std::string_view name) {
      return reinterpret_cast<float*>(first_element(find_port(ports, name)));
    };
    const AttentionRules rules = with_inputs(rules_, ports);
    std::byte* weights = memory + weights_at_;
    std::byte* workspace = memory + workspace_at_;
    scores_.enqueue(at("q"), at("k"), weights, workspace, stream);
    cuda_support::check(launch_weights(rules, weights, weights, {statistic("lse"), statistic("max_logit")}, stream),
                        "te-numcheck's kernel for the weights of attention");
    if (rules.dropout_mask != nullptr) {
      cuda_support::check(launch_dropout(rules, weights, weights, stream), "te-numcheck's kernel for dropout");
    }
    output_.enqueue(weights, at("v"), at("o"), workspace, stream);
  }

 private:
  AttentionRules rules_;
  AttentionStacks stacks_;
  BatchedProduct scores_;
  BatchedProduct output_;
  Regions regions_;
  std::size_t weights_at_;
  std::size_t workspace_at_;
};

Algorithm algorithm(const cublas_support::CublasLt& lt, cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::AttentionFwdParams>(call.c->params);
  require_known(p, *call.c->mode);
  const auto forward = std::make_shared<const Forward>(lt, device.info().sm, p, *call.c->mode);
  Algorithm result;
  result.label = "cuBLASLt products around own softmax";
  result.details = details_of(p, *call.c->mode, {&forward->scores(), &forward->output()});
  result.workspace_bytes = forward->workspace_bytes();
  result.launch = [forward, &device](std::span<const PortMemory> ports, std::byte* workspace) {
    device.use();
    return device.timed([&] { forward->enqueue(ports, workspace, device.stream()); });
  };
  result.rounding.slices = rounded_slices({&forward->scores(), &forward->output()});
  result.rounding.attention = model::eager_rounding(p, *call.c->mode);
  return result;
}

}  // namespace

const Binding& attention_fwd() {
  static const UnfusedBinding binding{{"unfused", "attention_fwd", kArithmetic}, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::unfused
