// `gemm` on a simulated device.
#pragma once

#include <span>
#include <string>

#include "kernels/contract/backend.hpp"
#include "model/arithmetic.hpp"
#include "model/error_model.hpp"
#include "model/simulate.hpp"
#include "op/gemm.hpp"

namespace numcheck::kernels::sim {

/// A case as the simulated library sees it, before a fault is planted.
struct SimGemm {
  op::GemmParams params;
  const op::Mode* mode = nullptr;
  int sm = 90;
  core::Dtype output = core::Dtype::fp32;
  model::PrecisionClass expected = model::PrecisionClass::native;  ///< which the simulated device honours
  model::Arithmetic arithmetic;
  bool a_is_dense = true;

  [[nodiscard]] bool uses_tf32() const noexcept { return expected == model::PrecisionClass::tf32_rne; }
};

/// Reads the case. Precondition: gemm_obstacle() is empty.
[[nodiscard]] SimGemm make_sim_gemm(const Call& call, int sm, std::string_view tf32_override);

/// The same of a product whose operands are stored without padding.
[[nodiscard]] SimGemm make_sim_gemm(const op::GemmParams& params, const op::Mode& mode, int sm,
                                    std::string_view tf32_override);

/// Why the architecture has no such product, as a sentence; empty if it has one.
[[nodiscard]] std::string sim_gemm_obstacle(const op::Mode& mode, int sm);

/// How k is cut into slices, and where these are added: named as by cuBLASLt.
struct SplitK {
  enum class Reduction {
    compute_type,  ///< in FP32
    output_type,   ///< after rounding each to the output's format
    in_place,      ///< to the output, which is rounded each time
  };
  int slices = 1;
  Reduction reduction = Reduction::compute_type;

  [[nodiscard]] bool rounds() const noexcept { return reduction != Reduction::compute_type; }
};

/// "split-K 4 (output_type)".
[[nodiscard]] std::string describe(const SplitK& split);

/// The schedule of the product with these slices.
[[nodiscard]] model::Schedule schedule_of(const SimGemm& gemm, const SplitK& split);

/// The task of matrix `batch`. Scales are read from memory.
[[nodiscard]] model::GemmTask make_task(const SimGemm& gemm, std::span<const PortMemory> ports, std::int64_t batch,
                                        const SplitK& split);

/// Runs all matrices of the batch, with the fault (empty: none), and stores amax where the op has one.
void run_sim_gemm(const SimGemm& gemm, std::span<const PortMemory> ports, const SplitK& split,
                  const std::string& fault);

}  // namespace numcheck::kernels::sim
