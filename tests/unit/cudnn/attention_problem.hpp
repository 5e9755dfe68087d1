// A case of attention with its parts.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/cudnn/binding.hpp"
#include "op/attention_params.hpp"
#include "op/field.hpp"
#include "plan/case.hpp"

namespace numcheck::kernels::cudnn::test {

struct Problem {
  plan::Case c;
  std::vector<op::Port> ports;

  [[nodiscard]] Call call() const { return {&c, ports, ""}; }
};

inline Problem problem(const op::Op& op, const op::AttentionParams& p, std::string_view mode) {
  Problem made;
  made.c.op = &op;
  made.c.params = op::to_params(p);
  made.c.mode = op::find_mode(mode);
  made.c.backend = "cudnn";
  made.ports = op.ports(made.c.params, *made.c.mode);
  plan::identify(made.c);
  return made;
}

}  // namespace numcheck::kernels::cudnn::test
