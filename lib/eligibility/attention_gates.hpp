// Which cases of attention libraries refuse, and why: questions to configs/attention_gates.json.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "eligibility/gate_table.hpp"

namespace numcheck::eligibility {

/// A gate that fails, or that cannot be decided because a version is unknown.
struct Refusal {
  const Gate* gate = nullptr;
  std::string sentence;  ///< with the case's numbers
  bool certain = true;
};

/// The table, decoded once. Throws core::InternalError if configs/attention_gates.json has a mistake.
[[nodiscard]] const GateTable& attention_gates();

/// Every gate of the selector that fails or cannot be decided, in the table's order.
[[nodiscard]] std::vector<Refusal> refusals(Selector selector, const op::AttentionParams& p,
                                            const Circumstances& circumstances);

/// The sentence of the selector's first gate that certainly fails; empty if there is none.
[[nodiscard]] std::string first_refusal(Selector selector, const op::AttentionParams& p,
                                        const Circumstances& circumstances);

/// In which order TransformerEngine's PyTorch layer tries what it can choose.
[[nodiscard]] std::span<const TeChoice> te_order(const op::AttentionParams& p, const Circumstances& circumstances);

}  // namespace numcheck::eligibility
