#include "verdict/slices_overflow.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "op/gemm.hpp"
#include "op/known_cause.hpp"
#include "tolerance/output_reduction.hpp"

namespace numcheck::verdict {

bool slices_overflow(const EvaluationContext& context, const ComparedPort& compared, const tolerance::RunFacts& facts,
                     const model::ErrorModel& model) {
  if (compared.port().dtype != core::Dtype::fp16) {
    return false;
  }
  double scale = std::abs(op::from_params<op::GemmParams>(context.prepared->c->params).alpha);
  for (const std::string_view port : {"a", "b"}) {
    scale *= op::operand_named(context.prepared->rounding->operands, port).scale;
  }
  const model::ErrorModel overflowing = tolerance::with_overflowing_slices(model, scale);
  const auto entry = compare_output(context, compared, overflowing);
  const auto criteria = tolerance::judge(entry->statistics, overflowing, facts, context.prepared->c->tolerance);
  return std::ranges::all_of(criteria, &tolerance::Criterion::ok);
}

op::Finding slices_overflow_finding(std::string_view port, int slices) {
  op::Finding finding;
  finding.name = op::kSlicesOverflow.name;
  finding.port = port;
  finding.measured = 1;
  finding.cause = "sums of slices of k overflow in fp16";
  finding.text = fmt::format("{}: {} slices are added in that format, as the library declares", finding.cause, slices);
  finding.about = op::Finding::About::pattern;
  return finding;
}

}  // namespace numcheck::verdict
