#include "reference/attention_dropout_diagnosis.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "core/buffer.hpp"
#include "op/attention_params.hpp"
#include "reference/attention_compared.hpp"

namespace numcheck::reference {
namespace {

/// The part of the squared error that is gone where `other` is expected instead.
template <class Other>
double explained_by(const Compared& output, const Other& other) {
  double error = 0, left = 0;
  for (const std::size_t at : output.judged()) {
    const double off = output.error(at);
    const double rest = output.got[at] - other(at);
    error += off * off;
    left += off == 0 ? 0 : rest * rest;
  }
  return 1 - left / error;
}

void explain_offset(const op::FindingRequest& request, const op::AttentionParams& p,
                    std::vector<op::Finding>& findings) {
  if (const std::optional<Compared> offset = compared(request, "dsoftmax_offset")) {
    const double share = explained_by(*offset, [&](std::size_t at) { return (1 - p.dropout) * offset->expected[at]; });
    add_if_explained(findings, op::kSinkGradient, *offset, op::Finding::About::numbers, share,
                     "the gradient of the softmax offset is multiplied by 1 - dropout");
  }
}

/// D is linear in o, so an o that is larger makes the D that was forgotten to be made smaller.
void explain_sums(const op::FindingRequest& request, const op::AttentionParams& p,
                  op::Values (*backward)(const op::ReferenceRequest&), std::vector<op::Finding>& findings) {
  op::ReferenceRequest altered{.params = request.params, .sample = {}, .values_only = true};
  altered.inputs.assign(request.inputs.begin(), request.inputs.end());
  const auto o = std::ranges::find(altered.inputs, "o", &op::Operand::port);
  core::Buffer<double> larger(o->elements());
  for (std::size_t at = 0; at < larger.size(); ++at) {
    larger[at] = o->data[at] * p.keep_scale();
  }
  o->data = larger.data();
  const op::Values wrong = backward(altered);
  for (const std::string_view port : std::array<std::string_view, 3>{"dq", "dk", "dbias"}) {
    const auto found = std::ranges::find(wrong.outputs, port, &op::OutputValues::port);
    const std::optional<Compared> output = compared(request, port);
    if (output && found != wrong.outputs.end()) {
      const double share = explained_by(*output, [&](std::size_t at) { return found->value[at]; });
      add_if_explained(findings, op::kDeltaUnscaled, *output, op::Finding::About::numbers, share,
                       "D is not multiplied by 1 - dropout");
    }
  }
}

}  // namespace

void explain_dropout(const op::FindingRequest& request, op::Values (*backward)(const op::ReferenceRequest&),
                     std::vector<op::Finding>& findings) {
  const auto p = op::from_params<op::AttentionParams>(*request.params);
  // Where this is about an earlier pass, o is not known yet.
  if (p.has_dropout() && op::find_operand(request.inputs, "o") != nullptr) {
    explain_offset(request, p, findings);
    explain_sums(request, p, backward, findings);
  }
}

}  // namespace numcheck::reference
