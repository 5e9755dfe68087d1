#include "kernels/cudnn/attention_gates.hpp"

#include <cstdint>

#include "eligibility/attention_gates.hpp"

namespace numcheck::kernels::cudnn {

std::string attention_gate(const op::AttentionParams& p, const AttentionTarget& target) {
  return eligibility::first_refusal(eligibility::Selector::cudnn, p,
                                    {.storage = target.storage,
                                     .training = !target.forward,
                                     .backward = !target.forward,
                                     .deterministic = !target.forward,
                                     .sm = target.sm,
                                     .cudnn = static_cast<std::int64_t>(target.version)});
}

}  // namespace numcheck::kernels::cudnn
