#include "reference/attention_missing_sink.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "op/attention_fwd.hpp"
#include "reference/attention_compared.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

/// sum(e g) / sum(g^2) over all elements that are finite; NaN if the sink makes no difference.
double part_of_difference(const Compared& output, std::span<const double> vanilla) {
  double product = 0, square = 0;
  for (std::size_t at = 0; at < vanilla.size(); ++at) {
    const double g = vanilla[at] - output.expected[at];
    if (std::isfinite(g) && std::isfinite(output.got[at])) {
      product += output.error(at) * g;
      square += g * g;
    }
  }
  return product / square;
}

}  // namespace

void explain_missing_sink(const op::FindingRequest& request, std::vector<op::Finding>& findings) {
  auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  if (p.softmax == "vanilla" || p.dropout > 0) {
    return;
  }
  p.softmax = "vanilla";
  const op::Params params = op::to_params(p);
  std::vector<op::Operand> inputs;
  std::ranges::copy_if(request.inputs, std::back_inserter(inputs),
                       [](const op::Operand& input) { return input.port != "softmax_offset"; });
  const op::Values vanilla = attention_fwd_reference().values(
      {.params = &params, .inputs = std::move(inputs), .sample = *request.sample, .values_only = true});
  for (const op::OutputValues& values : vanilla.outputs) {
    const std::optional<Compared> output = compared(request, values.port);
    if (output) {
      const double t = part_of_difference(*output, values.value.span());
      add_if_explained(findings, op::kSinkMissing, *output, op::Finding::About::numbers, 1 - std::fabs(1 - t),
                       "the sink is left out of the denominator");
    }
  }
}

}  // namespace numcheck::reference
