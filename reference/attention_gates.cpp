#include "reference/attention_gates.hpp"

#include <algorithm>
#include <iterator>

#include "reference/amax_of_codes.hpp"
#include "reference/attention_dropout_mask.hpp"

namespace numcheck::reference {

std::span<const op::OwnGate> attention_gates() {
  static const std::vector<op::OwnGate> gates = [] {
    const std::span<const op::OwnGate> of_mask = drawn_mask_gates();
    std::vector<op::OwnGate> all(of_mask.begin(), of_mask.end());
    all.push_back(kAmaxOfCodes);
    return all;
  }();
  return gates;
}

std::vector<op::Finding> judge_attention_itself(const op::FindingRequest& request) {
  std::vector<op::Finding> findings = judge_drawn_mask(request);
  std::ranges::move(judge_amaxes(request), std::back_inserter(findings));
  return findings;
}

}  // namespace numcheck::reference
