#include "kernels/cudnn/attention_gates.hpp"

#include <cstdint>
#include <utility>

#include "eligibility/attention_gates.hpp"

namespace numcheck::kernels::cudnn {

AttentionGate attention_gate(const op::AttentionParams& p, const AttentionTarget& target) {
  AttentionGate gate;
  for (eligibility::Refusal& refusal : eligibility::refusals(eligibility::Selector::cudnn, p,
                                                             {.storage = target.storage,
                                                              .training = !target.forward,
                                                              .backward = !target.forward,
                                                              .deterministic = !target.forward,
                                                              .sm = target.sm,
                                                              .cudnn = static_cast<std::int64_t>(target.version)})) {
    const bool is_asked = refusal.gate->answer != eligibility::Answer::not_asked;
    std::string& first = is_asked ? gate.excluded : gate.not_asked;
    if (first.empty() && refusal.certain) {
      first = std::move(refusal.sentence);
    }
  }
  return gate;
}

}  // namespace numcheck::kernels::cudnn
