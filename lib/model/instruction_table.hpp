// The matrix instructions of every modelled architecture, as data: configs/models/*.json, embedded at build time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "model/fused_step.hpp"

namespace numcheck::model {

/// Where a matrix instruction takes its operands from: registers of a warp, shared memory of a warp group, or tensor
/// memory.
enum class InstructionClass : std::uint8_t { mma, wgmma, tcgen05 };

/// In which order an instruction's k products are assigned to its steps.
enum class StepOrder : std::uint8_t {
  ascending,           ///< step s takes products s L .. s L + L - 1
  low_and_high_pairs,  ///< step 0 takes k mod 4 in {0, 1}, step 1 the others: FP8 unpacked into two FP16 registers
};

/// One instruction: k/L steps, each continuing from the rounded result of the one before.
struct Instruction {
  InstructionClass instruction_class = InstructionClass::mma;
  std::string shape;  ///< "m16n8k16"
  std::vector<core::Dtype> operands;
  bool mixed = false;                          ///< operands may be any two of the list; otherwise both are the same
  core::Dtype accumulate = core::Dtype::fp32;  ///< format of C and D: fp32 or fp16
  int k = 16;
  StepModel step;
  StepOrder order = StepOrder::ascending;
  bool late_c = false;   ///< the steps start from zero and C is added at the end with one rounding to nearest even
  std::string evidence;  ///< why the parameters are believed

  [[nodiscard]] bool takes(core::Dtype a, core::Dtype b) const noexcept;
};

/// One architecture, and what GEMM libraries use on it.
struct Architecture {
  int sm = 0;
  std::string name;
  std::vector<std::string> sources;
  std::vector<Instruction> instructions;
  InstructionClass gemm_class = InstructionClass::mma;  ///< class that library GEMMs run on
  int fp8_promotion = 0;  ///< products between promotions if split accumulation is requested; 0: no effect
  std::string gemm_evidence;
};

/// All architectures, ascending. Throws core::InternalError if an embedded file is invalid.
[[nodiscard]] std::span<const Architecture> architectures();

/// The architecture with that number, or the nearest earlier one; null below the first.
[[nodiscard]] const Architecture* find_architecture(int sm);

/// The instruction with the largest k for these operands; null if the architecture has none.
[[nodiscard]] const Instruction* find_instruction(const Architecture& architecture, InstructionClass wanted,
                                                  core::Dtype a, core::Dtype b, core::Dtype accumulate);

[[nodiscard]] const char* instruction_class_name(InstructionClass c) noexcept;
[[nodiscard]] const char* rounding_name(Rounding rho) noexcept;  ///< "RZ to FP32"

/// D = A B + C for one output element of the instruction: a and b hold `instruction.k` operand words each (if fewer,
/// the rest is zero), c and the result are words of the accumulator format. Throws core::InternalError if the operands
/// do not match the instruction, or if it multiplies with scales (group_product.hpp).
[[nodiscard]] std::uint32_t execute(const Instruction& instruction, std::span<const std::uint32_t> a,
                                    core::Dtype a_dtype, std::span<const std::uint32_t> b, core::Dtype b_dtype,
                                    std::uint32_t c);

}  // namespace numcheck::model
