// Products of FP32 operands that a run converts before it multiplies them: what the reference makes of those.
#pragma once

#include <memory>
#include <vector>

#include "core/buffer.hpp"
#include "model/error_model.hpp"
#include "op/reference.hpp"
#include "verdict/comparison.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// The outputs for A and B as the run converted them, by which it is judged: then rounding them is no part of its error.
/// Null if the case's own outputs judge it: the run was not classified, ran in another class than the one that it is judged
/// by, or on FP32; the conversion may make an operand infinite, or comes after a multiplication by alpha that rounds; or
/// the case is an exact one.
[[nodiscard]] std::shared_ptr<const op::Values> converted_values(const EvaluationContext& context,
                                                                 const worker::RunReport& run,
                                                                 model::PrecisionClass judged);

/// The operands of the case, or, if the run is judged by converted ones (EvaluationContext::converted), those.
class JudgedOperands {
 public:
  JudgedOperands(const EvaluationContext& context, const worker::RunReport& run);

  [[nodiscard]] const std::vector<op::Operand>& get() const noexcept { return operands_; }

 private:
  std::vector<op::Operand> operands_;
  std::vector<core::Buffer<double>> owned_;
};

/// Puts the errors against the operands as given into the statistics of a comparison with converted ones: what people look
/// for in TF32 is that error. Everything that gates use stays.
void report_errors(const metric::Statistics& given, metric::Statistics& statistics);

/// Makes converted_values return these for that conversion: what is expected of operands that it does not change.
void take_for_converted(const EvaluationContext& context, const model::Conversion& conversion,
                        std::shared_ptr<const op::Values> values);

}  // namespace numcheck::verdict
