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

/// What documents and measurements say of a case, as ends of sentences: "head dimensions must be multiples of 8 (d is
/// 36)".
struct AttentionGate {
  std::string excluded;   ///< the first rule that excludes the case; the library decides. Empty: none
  std::string not_asked;  ///< the first for which the library is not asked, because it answers wrongly. Empty: none
};

/// Source: the rows "cudnn" of configs/attention_gates.json, each with its own.
[[nodiscard]] AttentionGate attention_gate(const op::AttentionParams& p, const AttentionTarget& target);

}  // namespace numcheck::kernels::cudnn
