#include "op/attention_bwd.hpp"

#include <memory>

#include "kernels/contract/ports.hpp"
#include "kernels/cuda_support/check.hpp"
#include "kernels/unfused/attention_setup.hpp"
#include "kernels/unfused/binding.hpp"
#include "kernels/unfused/bindings.hpp"
#include "model/eager_attention.hpp"

namespace numcheck::kernels::unfused {
namespace {

void check(cudaError_t status) {
  cuda_support::check(status, "te-numcheck's kernels for the gradients of attention");
}

/// The products of the backward pass, row-major, for each sequence and head:
///
///   scores   sq x sk = scale q (sq x d) k^T (k: sk x d)            scale 1 with a pre_scale bias
///   dv       sk x dv = p^T (p: sq x sk, after dropout) do (sq x dv)
///   dp       sq x sk = do (sq x dv) v^T (v: sk x dv)
///   dq       sq x d  = scale dt (sq x sk) k (sk x d)               scale 1 with a pre_scale bias: dt has it
///   dk       sk x d  = scale dt^T (dt: sq x sk) q (sq x d)
///
/// dv and dk go to the outputs, or to parts of the workspace if several heads share keys.
struct Products {
  Products(const cublas_support::CublasLt& lt, int sm, const op::AttentionParams& p, const op::Mode& mode)
      : stacks(p),
        scale(p.bias == "pre_scale" ? 1 : p.factor()),
        scores(lt, mode, sm, "q k^T",
               stacks.product({stacks.queries()}, {stacks.keys(), true}, stacks.scores(), scale)),
        dv(lt, mode, sm, "p^T do",
           stacks.product({stacks.scores(), true}, {stacks.outputs()},
                          stacks.group() > 1 ? stacks.value_parts() : stacks.values(), 1)),
        dp(lt, mode, sm, "do v^T", stacks.product({stacks.outputs()}, {stacks.values(), true}, stacks.scores(), 1)),
        dq(lt, mode, sm, "ds k", stacks.product({stacks.scores()}, {stacks.keys()}, stacks.queries(), scale)),
        dk(lt, mode, sm, "ds^T q",
           stacks.product({stacks.scores(), true}, {stacks.queries()},
                          stacks.group() > 1 ? stacks.key_parts() : stacks.keys(), scale)) {}

  AttentionStacks stacks;
  double scale;
  BatchedProduct scores, dv, dp, dq, dk;
};

/// Places in the workspace. Products of q and k are needed beyond the weights only for the slope of a cap; otherwise
/// the weights replace them. With dropout, weights are needed before and after it.
struct Places {
  Places(const Products& products, const op::AttentionParams& p, std::int64_t element_bytes) {
    const std::int64_t rows = p.batches * p.heads * p.sq;
    const std::int64_t parts = products.stacks.group() > 1 ? p.batches * p.heads * p.sk : 0;
    weights = regions.add(rows * p.sk, element_bytes);
    dropped = p.has_dropout() ? regions.add(rows * p.sk, element_bytes) : weights;
    scores = p.softcap > 0 ? regions.add(rows * p.sk, element_bytes) : weights;
    gradients = regions.add(rows * p.sk, element_bytes);
    dk = regions.add(parts * p.d, element_bytes);
    dv = regions.add(parts * p.value_channels(), element_bytes);
    lse = regions.add(rows, sizeof(float));
    dots = regions.add(rows, sizeof(float));
    workspace = add_workspace(regions, {&products.scores, &products.dv, &products.dp, &products.dq, &products.dk});
  }

  Regions regions;
  std::size_t weights = 0, dropped = 0, scores = 0, gradients = 0, dk = 0, dv = 0, lse = 0, dots = 0, workspace = 0;
};

class Backward {
 public:
  Backward(const cublas_support::CublasLt& lt, int sm, const op::AttentionParams& p, const op::Mode& mode)
      : p_(p),
        rules_(rules_of(p, mode)),
        products_(lt, sm, p, mode),
        places_(products_, p, core::dtype_info(mode.first).storage_bytes) {}

  [[nodiscard]] const Products& products() const noexcept { return products_; }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return places_.regions.bytes(); }

  void enqueue(std::span<const PortMemory> ports, std::byte* memory, cudaStream_t stream) const {
    const auto at = [&ports](std::string_view name) { return first_element(&port_memory(ports, name)); };
    const AttentionRules rules = with_inputs(rules_, ports);
    std::byte* workspace = memory + places_.workspace;
    std::byte* weights = memory + places_.weights;
    std::byte* gradients = memory + places_.gradients;
    const bool shared = products_.stacks.group() > 1;
    std::byte* dk = shared ? memory + places_.dk : at("dk");
    std::byte* dv = shared ? memory + places_.dv : at("dv");

    products_.scores.enqueue(at("q"), at("k"), memory + places_.scores, workspace, stream);
    check(launch_weights(rules, memory + places_.scores, weights,
                         {reinterpret_cast<float*>(memory + places_.lse), nullptr}, stream));
    if (rules.dropout_mask != nullptr) {
      check(launch_dropout(rules, weights, memory + places_.dropped, stream));
    }
    products_.dv.enqueue(memory + places_.dropped, at("do"), dv, workspace, stream);
    products_.dp.enqueue(at("do"), at("v"), gradients, workspace, stream);
    differentiate(rules, ports, memory, stream);
    products_.dq.enqueue(gradients, at("k"), at("dq"), workspace, stream);
    products_.dk.enqueue(gradients, at("q"), dk, workspace, stream);
    if (shared) {
      check(launch_group_sum(group_sum("dk", p_.d, dk, at("dk")), stream));
      check(launch_group_sum(group_sum("dv", p_.value_channels(), dv, at("dv")), stream));
    }
  }

 private:
  /// From dp to what dq and dk are made of; on the way, the gradients of bias and offset.
  void differentiate(const AttentionRules& rules, std::span<const PortMemory> ports, std::byte* memory,
                     cudaStream_t stream) const {
    const auto at = [&ports](std::string_view name) { return first_element(find_port(ports, name)); };
    const auto* lse = reinterpret_cast<const float*>(memory + places_.lse);
    auto* dots = reinterpret_cast<float*>(memory + places_.dots);
    std::byte* gradients = memory + places_.gradients;
    const OutputRows rows{at("o"), at("do"), strides_of(p_, op::Side::queries, "o", p_.value_channels()),
                          p_.value_channels()};
    check(launch_score_gradients(rules, rows, memory + places_.weights, gradients, dots, stream));
    if (rules.sink == Sink::learnable) {
      check(launch_offset_gradient(rules, lse, dots, reinterpret_cast<float*>(at("dsoftmax_offset")), stream));
    }
    if (rules.bias == Bias::post_scale) {
      check(launch_bias_gradient(rules, gradients, at("dbias"), stream));
    }
    if (rules.softcap > 0 || rules.bias == Bias::pre_scale) {
      check(launch_product_gradients(rules, memory + places_.scores, gradients, stream));
    }
    if (rules.bias == Bias::pre_scale) {
      check(launch_bias_gradient(rules, gradients, at("dbias"), stream));
    }
  }

  [[nodiscard]] GroupSum group_sum(std::string_view port, std::int64_t channels, const std::byte* parts,
                                   std::byte* sum) const {
    return {rules_.format,
            p_.batches,
            p_.key_heads(),
            products_.stacks.group(),
            p_.sk,
            channels,
            parts,
            sum,
            strides_of(p_, op::Side::keys, port, channels)};
  }

  op::AttentionParams p_;
  AttentionRules rules_;
  Products products_;
  Places places_;
};

Algorithm algorithm(const cublas_support::CublasLt& lt, cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::AttentionBwdParams>(call.c->params);
  require_known(p, *call.c->mode);
  if (call.chained) {
    throw NotSupported(
        "the backward pass of unfused attention computes weights and log-sum-exps again and reads no lse: set "
        "statistics "
        "to reference");
  }
  const auto backward = std::make_shared<const Backward>(lt, device.info().sm, p, *call.c->mode);
  const Products& products = backward->products();
  Algorithm result;
  result.label = "cuBLASLt products around own softmax gradient";
  result.details =
      details_of(p, *call.c->mode, {&products.scores, &products.dv, &products.dp, &products.dq, &products.dk});
  result.workspace_bytes = backward->workspace_bytes();
  result.launch = [backward, &device](std::span<const PortMemory> ports, std::byte* workspace) {
    device.use();
    return device.timed([&] { backward->enqueue(ports, workspace, device.stream()); });
  };
  result.rounding.slices = rounded_slices({&products.scores, &products.dv, &products.dp, &products.dq, &products.dk});
  result.rounding.attention = model::eager_rounding(p, *call.c->mode);
  return result;
}

}  // namespace

const Binding& attention_bwd() {
  static const UnfusedBinding binding{{"unfused", "attention_bwd", kArithmetic}, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::unfused
