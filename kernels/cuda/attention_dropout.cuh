// Dropout of weights by a mask that is an input.
#pragma once

#include "kernels/cuda/attention_score.cuh"

namespace numcheck::kernels::cuda {

/// Multiplies numbers of pairs of a query and a key by mask / (1 - dropout), where a position sees the other; elsewhere they
/// stay. Nothing happens without a mask.
template <Own own, class T>
__device__ __forceinline__ void drop(const AttentionRules& rules, const Band& band, const TileAt& at, int batch,
                                     int head, PerPair& numbers) {
  if (rules.dropout_mask.data == nullptr) {
    return;
  }
  const TileThread thread;
  const T* const mask =
      static_cast<const T*>(rules.dropout_mask.data) + (std::int64_t{batch} * rules.heads + head) * rules.sq * rules.sk;
  Scores<T>::for_each_pair([&](int r, int c) {
    if (at.whole || band.sees(at.own + thread.own + r, at.other + thread.other + c)) {
      const auto pair = Scores<T>::template pair_of<own>(at, r, c);
      numbers[r][c] *= rules.keep_scale * to_float(mask[std::int64_t{pair.query} * rules.sk + pair.key]);
    }
  });
}

}  // namespace numcheck::kernels::cuda
