// What NVIDIA's documents exclude from cuDNN's attention: to explain a refusal, and to point out where the library
// accepts what they exclude.
#pragma once

#include <cstddef>
#include <string>

#include "core/dtype.hpp"
#include "op/attention_params.hpp"

namespace numcheck::kernels::cudnn {

/// What rules depend on besides the case.
struct AttentionTarget {
  bool forward = true;
  std::size_t version = 0;  ///< cudnnGetVersion
  int sm = 0;               ///< 10 * major + minor
  core::Dtype storage = core::Dtype::bf16;
};

/// The first version whose engines are asked at all: 9.10.0 and 9.10.1 are known to be wrong, and older ones need other
/// graphs.
inline constexpr std::size_t kFirstAttentionVersion = 91002;

/// The first rule that excludes the case, as the end of a sentence: "head dimensions must be multiples of 8 (d is 36)".
/// Empty if there is none. The library decides: a rule neither refuses a case nor lets it pass.
/// Source: the rows "cudnn" of configs/attention_gates.json, each with its own.
[[nodiscard]] std::string attention_gate(const op::AttentionParams& p, const AttentionTarget& target);

}  // namespace numcheck::kernels::cudnn
