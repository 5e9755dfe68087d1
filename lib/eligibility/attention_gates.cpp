#include "eligibility/attention_gates.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "eligibility/embedded_gates.hpp"
#include "eligibility/gate_text.hpp"

namespace numcheck::eligibility {

const GateTable& attention_gates() {
  static const GateTable table = decode_gates(attention_gates_text());
  return table;
}

std::vector<Refusal> refusals(Selector selector, const op::AttentionParams& p, const Circumstances& circumstances) {
  const Facts facts(p, circumstances);
  std::vector<Refusal> found;
  for (const Gate& gate : attention_gates().gates) {
    const Truth fails = gate.selector == selector ? evaluate(gate.refuses, facts) : Truth::no;
    if (fails != Truth::no) {
      found.push_back({&gate, fill_in(gate.sentence, facts), fails == Truth::yes});
    }
  }
  return found;
}

std::string first_refusal(Selector selector, const op::AttentionParams& p, const Circumstances& circumstances) {
  const std::vector<Refusal> all = refusals(selector, p, circumstances);
  const auto first = std::ranges::find(all, true, &Refusal::certain);
  return first == all.end() ? std::string() : first->sentence;
}

std::span<const TeChoice> te_order(const op::AttentionParams& p, const Circumstances& circumstances) {
  const Facts facts(p, circumstances);
  for (const Preference& preference : attention_gates().preferences) {
    if (evaluate(preference.when, facts) == Truth::yes) {
      return preference.order;
    }
  }
  throw core::InternalError("configs/attention_gates.json has no preference for this case");
}

}  // namespace numcheck::eligibility
