#include "reference/attention_keys_beyond.hpp"

#include <cmath>
#include <optional>
#include <string>

#include "reference/attention_compared.hpp"
#include "reference/dequantised.hpp"

namespace numcheck::reference {
namespace {

/// The largest scale exp(-lse) |D| of all queries.
double largest_gradient(const AttentionProblem& problem, const Dequantised& inputs) {
  const op::AttentionParams& p = problem.params();
  const op::Operand& o = op::operand_named(inputs.operands(), "o");
  const op::Operand& d_o = op::operand_named(inputs.operands(), "do");
  const op::Operand& lse = op::operand_named(inputs.operands(), "lse");
  const std::int64_t channels = p.value_channels();
  double largest = 0;
  for (std::int64_t head = 0; head < p.batches * p.heads; ++head) {
    const op::HeadPlace rows = op::head_place(p, op::Side::queries, head / p.heads, head % p.heads, channels);
    const op::HeadPlace statistics = op::statistic_place(p, head / p.heads, head % p.heads);
    for (std::int64_t i = 0; i < problem.lengths(head / p.heads).queries; ++i) {
      double delta = 0;
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::size_t at = element_at(rows, i) + static_cast<std::size_t>(c);
        delta += o.data[at] * d_o.data[at];
      }
      const double gradient = std::fabs(problem.factor() * std::exp(-lse.data[element_at(statistics, i)]) * delta);
      largest = std::isfinite(gradient) ? std::fmax(largest, gradient) : largest;
    }
  }
  return largest;
}

}  // namespace

void explain_keys_beyond(const op::FindingRequest& request, const AttentionProblem& problem,
                         std::vector<op::Finding>& findings) {
  const std::optional<Compared> amax = compared(request, "dp_amax");
  if (!amax || !(amax->got[0] > amax->expected[0])) {
    return;
  }
  const double beyond = largest_gradient(problem, Dequantised(request.inputs));
  add_if_explained(findings, op::kKeysBeyond, *amax, op::Finding::About::numbers,
                   1 - std::fabs(amax->got[0] - beyond) / (amax->got[0] - amax->expected[0]),
                   "keys of zeros beyond the last one count in the amax");
}

}  // namespace numcheck::reference
