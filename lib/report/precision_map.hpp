// Which precision class each request really got, by shape.
#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Groups the runs whose class was observed by request, and describes which shapes got which class:
///
///   [{op, mode,
///     request: {"NVIDIA_TF32_OVERRIDE": "1"}    what else asks for a precision, if it is set
///     backend,
///     layout: {"trans_a": false, "trans_b": true}    empty for ops without operands to transpose
///     expected: "tf32_rne", class: "fp32",
///     note: "operands have the range of FP16"   of the probe; may be empty
///     border: "none" | "shape" | "algorithm" | "unknown",
///     where: "k % 4 != 0", also: ["m <= 8"],
///     cases, runs,
///     smallest (digest), smallest_id, smallest_size (see product_size)}]
///
/// Requests are in the record's order; the classes of one have most cases first. `border` says what tells this class
/// from the others of the same request and layout:
///
///   none       it is the only one, `where` is "everywhere"
///   shape      `where` is a condition on the shapes that ran (find_border), `also` has other ones that fit as well
///   algorithm  `where` names the library's algorithms that gave this class and no other: "algo 28"
///   unknown    no simple condition fits; there is only the smallest shape
///
/// Conditions describe the shapes that ran; other shapes may behave differently. A case that ran with the variable as it
/// was has the value in `environment` (the report's). Runs that failed, or that were not classified, do not count.
[[nodiscard]] nlohmann::json precision_map(std::span<const nlohmann::json> cases, const nlohmann::json& environment);

}  // namespace numcheck::report
