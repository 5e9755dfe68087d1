// The effect of NVIDIA_TF32_OVERRIDE, computed from the record's cases alone: each case with unset, 0 and 1.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Joins cases that differ only in NVIDIA_TF32_OVERRIDE. A case that does not set the variable ran with the value in
/// `environment` (the report's). Only cases that ran in at least two of the three states get a row.
///
/// {"rows": [{op, mode, backend, shape, inputs,
///            predicted: the backend is `sim`, or (`simulated`) the whole device is: arithmetic as modelled, not as it ran,
///            states: {"unset" | "0" | "1":
///              {case, status, observed: [class...], rel_l2 (largest), effective_bits (smallest), device_s (first
///               run), implementation (first run), bits: "identical" | "differ" against the base state, or null}},
///            base: "unset" (or "0" where unset did not run)}],
///  "sentences": ["gemm fp32 (cublaslt): override 1 turns FP32 into TF32: error 1.1e-06 -> 2.9e-04; override 0 changes nothing,
///                bit for bit", ...]}    one sentence per op x mode x backend
///
/// If several algorithms ran, bits are compared between runs with equal implementation or, if there are none, between
/// the first runs.
[[nodiscard]] nlohmann::json override_effect(std::span<const nlohmann::json> cases, const nlohmann::json& environment,
                                             bool simulated);

}  // namespace numcheck::report
