// Which arithmetic a declared GEMM uses on an architecture; error models, the simulator and `explain` rely on it.
#pragma once

#include <string>

#include "model/fused_step.hpp"
#include "model/instruction_table.hpp"
#include "op/mode.hpp"

namespace numcheck::model {

/// Arithmetic of one output element before the epilogue.
///
///   fma_chain    acc = fma(a_t, b_t, acc) in FP32, nearest even, t ascending
///   tensor_core  acc = rho(sum of L products and acc, each truncated at 2^(e_max - F)), L products per step
///   fp16_chain   the same with rho = nearest even to FP16
///
/// A step's error is at most L 2^-F 2^e_max + 2^-tau |sum| (tau: 23 RZ to FP32, 13 RZ to E8M13, 11 RNE to FP16).
/// Source: tensor-core models as in fused_step.hpp; configs/models/*.json.
struct Arithmetic {
  enum class Kind { fma_chain, tensor_core, fp16_chain } kind = Kind::fma_chain;
  int L = 1;                   ///< products per step; 1 for fma_chain
  int F = 0;                   ///< fraction bits kept at alignment; 0 for fma_chain (nothing is aligned)
  int tau = 24;                ///< the step's sum is rounded with a relative error of at most 2^-tau
  bool promoted = false;       ///< partial sums restart at zero and are added in FP32 every promotion_interval products
  int promotion_interval = 0;  ///< products; 0 if not promoted
  int steps_per_instruction = 1;
  double promotion_unit = 0x1p-24;        ///< unit roundoff of the additions of promoted and split-K partial sums
  Rounding rounding = Rounding::rz_fp32;  ///< rho; meaningless for fma_chain
  std::string description;                ///< "sm_90 wgmma L=32 F=13 RZ to E8M13, promoted every 128"
};

/// Why no GEMM of this mode runs on the architecture ("sm_80 has no matrix instruction for ..."); empty if one does.
[[nodiscard]] std::string gemm_obstacle(int sm, const op::Mode& mode);

/// The matrix instruction that library GEMMs of this mode run on (TF32 for operands in FP32 storage); null if there is
/// none.
[[nodiscard]] const Instruction* gemm_instruction(int sm, const op::Mode& mode);

/// A chain of FP32 multiply-adds, which every architecture has for every mode.
[[nodiscard]] Arithmetic fma_arithmetic(int sm);

/// The arithmetic of a GEMM of this mode. `promotes` is op::gemm_promotes: split FP8 accumulation was requested; where
/// the architecture needs no promotion (sm_100 and later) it has no effect. `tf32_class` says that operands in FP32
/// storage are rounded to TF32 and multiplied on tensor cores; other modes ignore it. For an architecture not in the
/// table the nearest earlier one stands in, and the description says so. Throws core::EnvironmentError if
/// gemm_obstacle() is not empty.
[[nodiscard]] Arithmetic gemm_arithmetic(int sm, const op::Mode& mode, bool promotes, bool tf32_class);

}  // namespace numcheck::model
