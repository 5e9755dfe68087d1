#include "reference/attention_own_forward.hpp"

#include <cstdint>
#include <utility>

#include "op/attention_params.hpp"
#include "op/field.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {

bool needs_own_forward(const op::ReferenceRequest& request) {
  return op::from_params<op::AttentionParams>(*request.params).runs_forward() &&
         op::find_operand(request.inputs, "lse") == nullptr;
}

op::Values with_own_forward(const op::ReferenceRequest& request, op::Values (*backward)(const op::ReferenceRequest&)) {
  op::Values all = attention_fwd_reference().values(request);
  op::ReferenceRequest passed{.params = request.params, .inputs = request.inputs, .sample = {}, .values_only = true};
  for (const op::OutputValues& output : all.outputs) {
    passed.inputs.push_back({.port = output.port,
                             .data = output.value.data(),
                             .rows = static_cast<std::int64_t>(output.value.size()),
                             .cols = 1});
  }
  for (op::OutputValues& gradient : backward(passed).outputs) {
    all.outputs.push_back(std::move(gradient));
  }
  return all;
}

}  // namespace numcheck::reference
