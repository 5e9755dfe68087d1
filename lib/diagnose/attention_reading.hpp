// How somebody's tensors of attention have their sequences, heads and channels, as far as their shapes tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "data/tensor_file.hpp"
#include "diagnose/fit.hpp"
#include "op/attention_params.hpp"

namespace numcheck::diagnose {

/// A tensor, and the port that it is taken for.
struct NamedTensor {
  std::string port;
  data::FileTensor tensor;    ///< its file must outlive it
  bool may_be_other = false;  ///< nobody said that it is of the op: it has the name of a port, or is left out
};

/// Steps in elements from one sequence, position, head and channel to the next.
struct HeadSteps {
  std::int64_t batch = 0, position = 0, head = 0, channel = 0;
};

/// Whether a tensor of heads has the positions and heads of keys, and the channels of values.
[[nodiscard]] bool is_of_keys(std::string_view port);
[[nodiscard]] bool is_of_values(std::string_view port);

/// Whether a tensor is a bias [1, 1, sq, sk] that all heads share.
[[nodiscard]] bool is_shared_bias(const NamedTensor& named, const op::AttentionParams& p);

/// One way to read the tensors, q first. Each dimension of a layout is one of theirs; heads and channels may be one dimension
/// ([b, s, h d], what TransformerEngine returns), or sequences and heads ([b h, s, d]). lse and max_logit are [b, h, s],
/// [b, h, s, 1] or [b, s, h], of thd [t, h], [t, h, 1] or [h, t].
///
/// thd: the sequences of [t, h, d] follow one another, as q_lengths and kv_lengths say, which hold lengths, or, as cu_seqlens
/// do, where sequences begin, and where the last one ends; tokens after that belong to none. Without them it is one sequence. As
/// runs draw lengths of their own, the case has layout bshd: each sequence in a row of as many positions as the longest one has.
struct AttentionReading {
  std::string layout;                               ///< of the tensors
  op::AttentionParams p;                            ///< layout and sizes of the case, and what else is chosen
  ChosenParams params;                              ///< the same: what is chosen, and what the shapes tell
  std::vector<TensorShape> shapes;                  ///< of the tensors, as the ports have them
  std::vector<std::int64_t> q_lengths, kv_lengths;  ///< of each sequence; empty: all are as long as they can be
  std::int64_t queries_left = 0, keys_left = 0;     ///< thd: tokens after the last sequence
  bool by_position = false;                         ///< lse is [b, s, h], or [h, t]: the other order

  /// Where the numbers of one of q, k, v, o and their gradients are. `tensor` is one of those that were read.
  [[nodiscard]] HeadSteps steps(std::string_view port, const data::FileTensor& tensor) const;
  /// thd: the first token of each sequence. Others: zeros.
  [[nodiscard]] std::vector<std::int64_t> first_tokens(bool is_key) const;
  [[nodiscard]] bool has_lengths() const noexcept { return !q_lengths.empty() && !kv_lengths.empty(); }
};

/// Every reading that the shapes and what is chosen allow. None if the op is not attention, or if q has fewer than three
/// dimensions or everything is chosen: then tensors are as the ports have them. Throws core::UsageError that says why of each
/// layout if tensors of three or four dimensions fit none.
[[nodiscard]] std::vector<AttentionReading> attention_readings(const op::Op& op, const ChosenParams& chosen,
                                                               const std::vector<NamedTensor>& tensors);

/// The tensors in the order of the case's ports, and what holds those that had to be moved.
struct Arranged {
  std::vector<NamedTensor> tensors;
  std::vector<core::Buffer<std::byte>> storage;
};
[[nodiscard]] Arranged arranged(const AttentionReading& reading, const std::vector<NamedTensor>& tensors);

}  // namespace numcheck::diagnose
