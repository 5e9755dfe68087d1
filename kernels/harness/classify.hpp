// Finds the precision that a product of FP32 operands really had: probe G6.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "kernels/contract/backend.hpp"
#include "kernels/harness/launcher.hpp"
#include "model/error_model.hpp"

namespace numcheck::kernels::harness {

/// The result of the probe.
struct Classification {
  std::optional<model::PrecisionClass> precision;  ///< nothing if the probe does not apply to the case
  /// Of both operands; nothing if they are FP32, differ, or have a range that the format does not have.
  std::optional<model::Conversion> conversion = {};
  std::string note;  ///< what the class leaves out: "operands have the range of FP16"; or why the probe does not apply
};

/// Numbers whose rounding to TF32 (nearest even, nearest away, truncated), BF16, FP16 and coarser formats differs
/// visibly: 1 + 2^-12, 1 + 3 2^-12, 1 + 2^-11 (a TF32 tie), 1 + 2^-9, 1 + 3 2^-9, 1 + 2^-7, and 2^17, which is beyond
/// the range of FP16.
inline constexpr std::array<float, 7> kProbeValues = {0x1.001p0F, 0x1.003p0F, 0x1.002p0F, 0x1.008p0F,
                                                      0x1.018p0F, 0x1.02p0F,  0x1p17F};

/// Classifies an operand by the results for kProbeValues, each multiplied by `factor` in FP32.
[[nodiscard]] Classification classify_values(std::span<const float, kProbeValues.size()> got, float factor);

/// Why the probe does not apply to the case; empty if it does. It applies to `gemm`, and to the first group with a product of
/// `grouped_gemm`, on FP32 operands with an FP32
/// output, at least one product, and alpha that keeps the probes normal, and with gelu within 2^-25 to 2^34.
[[nodiscard]] std::string classification_obstacle(const Call& call);

/// Fills all inputs with zeros. Once is enough for any number of calls of classify_algorithm.
void prepare_classification(DeviceMemory& memory, std::span<const PortMemory> ports);

/// Launches the algorithm on operands that are zero except for the first element along k, where one operand holds probe
/// values and the other holds 1 (with gelu a power of two), so that every partial sum is exact. Probes both operands, with as many launches as the
/// probe values need. Every output that is read depends on one probe. Inputs and D hold garbage afterwards.
/// Source: tensor_core_numerics section 2.6, probe G6.
[[nodiscard]] Classification classify_algorithm(const Algorithm& algorithm, const Call& call, DeviceMemory& memory,
                                                std::span<const PortMemory> ports, std::byte* workspace,
                                                Launcher& launcher);

}  // namespace numcheck::kernels::harness
