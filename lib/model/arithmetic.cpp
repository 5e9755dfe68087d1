#include "model/arithmetic.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "model/instruction_table.hpp"

namespace numcheck::model {
namespace {

using core::Dtype;

/// Formats in which the mode's operands reach the matrix instruction.
struct Operands {
  Dtype first;
  Dtype second;
  Dtype accumulate;
};

Operands operands_of(const op::Mode& mode) {
  const auto narrowed = [](Dtype stored) { return stored == Dtype::fp32 ? Dtype::tf32 : stored; };
  return {narrowed(mode.first), narrowed(mode.second), mode.compute == op::Compute::fp16 ? Dtype::fp16 : Dtype::fp32};
}

int tau_of(Rounding rho) {
  switch (rho) {
    case Rounding::rz_fp32:
      return 23;
    case Rounding::rz_e8m13:
      return 13;
    case Rounding::rne_fp16:
      return 11;
  }
  return 0;
}

std::string where(int sm, const Architecture& architecture) {
  return architecture.sm == sm ? fmt::format("sm_{}", sm)
                               : fmt::format("sm_{} (modelled as sm_{})", sm, architecture.sm);
}

Arithmetic fma_chain(std::string description) {
  Arithmetic a;
  a.description = std::move(description);
  return a;
}

}  // namespace

const Instruction* gemm_instruction(int sm, const op::Mode& mode) {
  const Architecture* architecture = find_architecture(sm);
  if (architecture == nullptr) {
    return nullptr;
  }
  const Operands o = operands_of(mode);
  return find_instruction(*architecture, architecture->gemm_class, o.first, o.second, o.accumulate);
}

std::string gemm_obstacle(int sm, const op::Mode& mode) {
  const Architecture* architecture = find_architecture(sm);
  if (architecture == nullptr) {
    return fmt::format("there is no model of sm_{}; the earliest modelled architecture is sm_{}", sm,
                       architectures().front().sm);
  }
  if (mode.first == Dtype::fp32 && mode.second == Dtype::fp32) {
    return {};
  }
  if (gemm_instruction(sm, mode) != nullptr) {
    return {};
  }
  const Operands o = operands_of(mode);
  return fmt::format("sm_{} has no matrix instruction for {} times {}{}", sm, core::dtype_info(o.first).name,
                     core::dtype_info(o.second).name,
                     mode.first == Dtype::fp4_e2m1 ? "; E2M1 needs sm_100 or later"
                     : mode.scaled                 ? "; FP8 needs sm_89 or later"
                                                   : "");
}

Arithmetic fma_arithmetic(int sm) {
  const Architecture* architecture = find_architecture(sm);
  return fma_chain(architecture == nullptr ? fmt::format("sm_{} FP32 fused multiply-add chain", sm)
                                           : fmt::format("{} FP32 fused multiply-add chain", where(sm, *architecture)));
}

Arithmetic gemm_arithmetic(int sm, const op::Mode& mode, bool promotes, bool tf32_class) {
  if (const std::string obstacle = gemm_obstacle(sm, mode); !obstacle.empty()) {
    throw core::EnvironmentError(obstacle);
  }
  if (mode.first == Dtype::fp32 && !tf32_class) {
    return fma_arithmetic(sm);
  }
  const Architecture& architecture = *find_architecture(sm);
  const Instruction& i = *gemm_instruction(sm, mode);
  Arithmetic a;
  a.kind = i.step.rho == Rounding::rne_fp16 ? Arithmetic::Kind::fp16_chain : Arithmetic::Kind::tensor_core;
  a.L = i.step.L;
  a.F = i.step.F;
  a.tau = tau_of(i.step.rho);
  a.rounding = i.step.rho;
  a.steps_per_instruction = i.k / i.step.L;
  a.promoted = promotes && mode.scaled && architecture.fp8_promotion > 0;
  a.promotion_interval = a.promoted ? architecture.fp8_promotion : 0;
  a.description =
      fmt::format("{} {} {}L={} F={} {}{}", where(sm, architecture), instruction_class_name(i.instruction_class),
                  mode.first == Dtype::fp32 ? "TF32 " : "", a.L, a.F, rounding_name(i.step.rho),
                  a.promoted ? fmt::format(", promoted every {}", a.promotion_interval) : "");
  return a;
}

}  // namespace numcheck::model
