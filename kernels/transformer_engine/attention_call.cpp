#include "kernels/transformer_engine/attention_call.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "kernels/transformer_engine/attention_config.hpp"
#include "kernels/transformer_engine/attention_interface.hpp"
#include "kernels/transformer_engine/attention_memory.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

using op::AttentionParams;

constexpr ObjectFunctions kForward = {kCreateAttentionFwd, kDestroyAttentionFwd, kSetAttentionFwd};
constexpr ObjectFunctions kBackward = {kCreateAttentionBwd, kDestroyAttentionBwd, kSetAttentionBwd};

constexpr SharedAttributes kForwardAttributes = {
    .mask = kFwdMask,
    .bias = kFwdBias,
    .window_left = kFwdWindowLeft,
    .window_right = kFwdWindowRight,
    .bottom_right = kFwdBottomRight,
    .softmax = kFwdSoftmax,
    .dropout = kFwdDropout,
    .scale = kFwdScale,
    .qkv_layout = kFwdQkvLayout,
    .o_format = kFwdOFormat,
    .longest_q = kFwdMaxQ,
    .longest_kv = kFwdMaxKv,
};
constexpr SharedAttributes kBackwardAttributes = {
    .mask = kBwdMask,
    .bias = kBwdBias,
    .window_left = kBwdWindowLeft,
    .window_right = kBwdWindowRight,
    .bottom_right = kBwdBottomRight,
    .softmax = kBwdSoftmax,
    .dropout = kBwdDropout,
    .scale = kBwdScale,
    .qkv_layout = kBwdQkvLayout,
    .o_format = kBwdOFormat,
    .longest_q = kBwdMaxQ,
    .longest_kv = kBwdMaxKv,
};

/// The tensors that both directions have.
class Tensors {
 public:
  Tensors(Operands& operands, const AttentionParams& p) : o_(operands), p_(p), memory_(p) {}

  /// A port in the case's layout.
  Handle heads(std::string_view port, op::Side side, std::int64_t channels) {
    const std::int64_t length = op::longest(p_, side), heads = op::heads_of(p_, side);
    const auto make = [&](Extents extents) {
      const bool written = o_.port(port).role == op::Role::output;
      return (written ? o_.output(port, extents) : o_.input(port, extents)).handle();
    };
    if (p_.is_ragged()) {
      return make({op::tokens(p_, side), heads, channels});
    }
    if (p_.layout == "sbhd") {
      return make({length, p_.batches, heads, channels});
    }
    return p_.layout == "bhsd" ? make({p_.batches, heads, length, channels})
                               : make({p_.batches, length, heads, channels});
  }
  /// A tensor that exists only inside the library's kernels: its scales, and its amax if the op has one. "s", "dp".
  Handle inner(const std::string& name) {
    Tensor& made = o_.none();
    if (o_.has(name + "_scale")) {
      made.set_scalar(kScale, o_.data(name + "_scale"));
      made.set_scalar(kRowwiseScaleInv, o_.data(name + "_scale_inv"));
      if (o_.has(name + "_amax")) {
        made.set_scalar(kAmax, o_.data(name + "_amax"));
      }
    }
    return made.handle();
  }
  Handle queries(std::string_view port) { return heads(port, op::Side::queries, p_.d); }
  Handle keys(std::string_view port) { return heads(port, op::Side::keys, p_.d); }
  Handle values(std::string_view port) { return heads(port, op::Side::keys, p_.value_channels()); }
  Handle outputs(std::string_view port) { return heads(port, op::Side::queries, p_.value_channels()); }
  Handle bias(std::string_view port) {
    return p_.has_bias_tensor() ? o_.input(port, {1, p_.heads, p_.sq, p_.sk}).handle() : none();
  }
  Handle softmax_offset() {
    return p_.softmax == "vanilla" ? none() : o_.tensor(offset_data(), kFloat32, {1, p_.heads, 1, 1}).handle();
  }
  Handle dsoftmax_offset() {
    void* data = o_.has("dsoftmax_offset") ? o_.data("dsoftmax_offset") : o_.extra() + memory_.dsoftmax_offset;
    return p_.softmax == "vanilla" ? none() : o_.tensor(data, kFloat32, {1, p_.heads, 1, 1}).handle();
  }
  Handle cu_seqlens_q() { return o_.tensor(at(memory_.cu_seqlens_q), kInt32, {p_.batches + 1}).handle(); }
  Handle cu_seqlens_kv() { return o_.tensor(at(memory_.cu_seqlens_kv), kInt32, {p_.batches + 1}).handle(); }
  Handle cu_seqlens_q_padded() { return starts(memory_.cu_seqlens_q_padded); }
  Handle cu_seqlens_kv_padded() { return starts(memory_.cu_seqlens_kv_padded); }
  Handle rng_state() { return o_.tensor(at(memory_.rng_state), kInt64, {2}).handle(); }
  Handle none() { return o_.none().handle(); }

  /// What the forward pass saves, in the library's order.
  void save(AuxiliaryTensors& saved) {
    saved.clear();
    add_statistic(saved, "lse");
    if (p_.max_logit) {
      add_statistic(saved, "max_logit");
    }
    saved.add(at(memory_.rng_state), kInt64, {2});
    if (p_.has_bias_tensor()) {
      saved.add(o_.data("bias"), data_type(o_.port("bias").dtype), {1, p_.heads, p_.sq, p_.sk});
    }
    if (p_.softmax != "vanilla") {
      saved.add(offset_data(), kFloat32, {1, p_.heads, 1, 1});
    }
  }

 private:
  /// One number per query.
  void add_statistic(AuxiliaryTensors& saved, std::string_view port) {
    if (p_.is_ragged()) {
      saved.add(o_.data(port), kFloat32, {op::tokens(p_, op::Side::queries), p_.heads, 1});
    } else {
      saved.add(o_.data(port), kFloat32, {p_.batches, p_.heads, p_.sq, 1});
    }
  }
  Handle starts(std::size_t offset) {
    return p_.is_ragged() ? o_.tensor(at(offset), kInt32, {p_.batches + 1}).handle() : none();
  }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return o_.extra() + offset; }
  [[nodiscard]] std::byte* offset_data() const {
    return o_.has("softmax_offset") ? o_.data("softmax_offset") : at(memory_.softmax_offset);
  }

  Operands& o_;
  AttentionParams p_;
  AttentionMemory memory_;
};

class ForwardCall {
 public:
  ForwardCall(Operands& operands, const AttentionParams& p, bool training)
      : o_(operands),
        tensors_(operands, p),
        params_(operands.context().library, kForward),
        saved_(operands.context().library) {
    AttentionTerms(p).apply(params_, kForwardAttributes);
    params_.set(kFwdIsTraining, training);
    params_.set(kFwdReturnMaxLogit, p.max_logit);
    params_.set(kFwdQ, tensors_.queries("q"));
    params_.set(kFwdK, tensors_.keys("k"));
    params_.set(kFwdV, tensors_.values("v"));
    params_.set(kFwdO, tensors_.outputs("o"));
    params_.set(kFwdBiasTensor, tensors_.bias("bias"));
    params_.set(kFwdSoftmaxOffset, tensors_.softmax_offset());
    params_.set(kFwdCuSeqlensQ, tensors_.cu_seqlens_q());
    params_.set(kFwdCuSeqlensKv, tensors_.cu_seqlens_kv());
    params_.set(kFwdRngState, tensors_.rng_state());
    params_.set(kFwdAuxiliary, saved_.pack());
    params_.set(kFwdS, tensors_.inner("s"));
    params_.set(kFwdCuSeqlensQPadded, tensors_.cu_seqlens_q_padded());
    params_.set(kFwdCuSeqlensKvPadded, tensors_.cu_seqlens_kv_padded());
    for (const int unused : {kFwdPageTableK, kFwdPageTableV}) {
      params_.set(unused, tensors_.none());
    }
  }

  /// With an empty workspace, the library also says what it will save; we give it the memory for that.
  void operator()(Handle workspace) {
    params_.set(kFwdWorkspace, workspace);
    params_.set(kFwdStream, o_.stream());
    const bool asks = saved_.size() == 0;
    o_.context().library.call(kAttentionFwd, params_.handle());
    if (asks) {
      accept_request();
    }
  }

 private:
  void accept_request() {
    const std::size_t requested = saved_.size();
    const BasicTensor statistics = requested == 0 ? BasicTensor{} : saved_.requested(0);
    std::size_t elements = 1;
    for (std::size_t i = 0; i < statistics.shape.ndim; ++i) {
      elements *= statistics.shape.data.at(i);
    }
    tensors_.save(saved_);
    const auto wanted = static_cast<std::size_t>(o_.port("lse").elements());
    if (requested != saved_.size() || statistics.dtype != kFloat32 || elements != wanted) {
      throw NotSupported(fmt::format(
          "TransformerEngine {} saves {} tensors for the backward pass, the first with {} elements; expected {} and "
          "log-sum-exps in FP32, {} of them",
          o_.context().library.version(), requested, elements, saved_.size(), wanted));
    }
  }

  Operands& o_;
  Tensors tensors_;
  AttributeObject params_;
  AuxiliaryTensors saved_;
};

class BackwardCall {
 public:
  BackwardCall(Operands& operands, const AttentionParams& p)
      : o_(operands),
        tensors_(operands, p),
        params_(operands.context().library, kBackward),
        saved_(operands.context().library) {
    const AttentionTerms terms(p);
    terms.apply(params_, kBackwardAttributes);
    params_.set(kBwdDoFormat, terms.format);
    params_.set(kBwdDqkvLayout, terms.layout);
    params_.set(kBwdDeterministic, true);
    params_.set(kBwdQ, tensors_.queries("q"));
    params_.set(kBwdK, tensors_.keys("k"));
    params_.set(kBwdV, tensors_.values("v"));
    params_.set(kBwdO, tensors_.outputs("o"));
    params_.set(kBwdDo, tensors_.outputs("do"));
    params_.set(kBwdDq, tensors_.queries("dq"));
    params_.set(kBwdDk, tensors_.keys("dk"));
    params_.set(kBwdDv, tensors_.values("dv"));
    params_.set(kBwdDbias, tensors_.bias("dbias"));
    params_.set(kBwdDsoftmaxOffset, tensors_.dsoftmax_offset());
    params_.set(kBwdCuSeqlensQ, tensors_.cu_seqlens_q());
    params_.set(kBwdCuSeqlensKv, tensors_.cu_seqlens_kv());
    tensors_.save(saved_);
    params_.set(kBwdAuxiliary, saved_.pack());
    params_.set(kBwdS, tensors_.inner("s"));
    params_.set(kBwdDp, tensors_.inner("dp"));
    params_.set(kBwdCuSeqlensQPadded, tensors_.cu_seqlens_q_padded());
    params_.set(kBwdCuSeqlensKvPadded, tensors_.cu_seqlens_kv_padded());
  }

  void operator()(Handle workspace) {
    params_.set(kBwdWorkspace, workspace);
    params_.set(kBwdStream, o_.stream());
    o_.context().library.call(kAttentionBwd, params_.handle());
  }

 private:
  Operands& o_;
  Tensors tensors_;
  AttributeObject params_;
  AuxiliaryTensors saved_;
};

}  // namespace

Enqueue forward_attention(Operands& operands, const AttentionParams& p, bool training) {
  const auto call = std::make_shared<ForwardCall>(operands, p, training);
  return [call](Handle workspace) { (*call)(workspace); };
}

Enqueue backward_attention(Operands& operands, const AttentionParams& p) {
  const auto call = std::make_shared<BackwardCall>(operands, p);
  return [call](Handle workspace) { (*call)(workspace); };
}

}  // namespace numcheck::kernels::transformer_engine
