// The parts of a case that are not parameters: inputs, environment, algorithms, tolerance, tags.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/case.hpp"
#include "plan/node.hpp"
#include "plan/reporter.hpp"

namespace numcheck::plan {

/// Decodes {"distribution": "normal", <its parameters>, "<port>": {...}}. Whether the op has such ports is checked
/// where the parameters are known. Ports with the common distribution are dropped.
[[nodiscard]] std::optional<InputSpec> decode_inputs(const Node& node, Reporter& reporter);

/// Members of an inputs object that describe ports: the objects among its values.
[[nodiscard]] std::vector<const Member*> port_members(const Node& node);

/// What is said of a distribution for an input that has none (op::Port::has_distribution).
[[nodiscard]] std::string computed_input_text(const op::Op& op, std::string_view port);

/// Decodes {"NVIDIA_TF32_OVERRIDE": "0", "CUBLAS_WORKSPACE_CONFIG": null}; accepts only settable_variables().
[[nodiscard]] std::optional<Environment> decode_environment(const Node& node, Reporter& reporter);

/// Decodes "heuristic", "all" or {"top": N}.
[[nodiscard]] std::optional<AlgorithmSpec> decode_algorithms(const Node& node, Reporter& reporter);

/// Decodes "default" or {"allclose": {"rtol", "atol"}, "ulp", "rel_l2", "min_judged", "statistics": {NAME: {"least", "most"}}}.
[[nodiscard]] std::optional<ToleranceSpec> decode_tolerance(const Node& node, Reporter& reporter);

/// Decodes a list of words of letters, digits and "._:+-".
[[nodiscard]] std::optional<std::vector<std::string>> decode_tags(const Node& node, Reporter& reporter);

/// Decodes the name of one of the op's modes (null: any op's); null after a report.
[[nodiscard]] const op::Mode* decode_mode(const Node& node, const op::Op* op, Reporter& reporter);

/// Largest N in {"top": N}: cuBLASLt is never asked for more.
inline constexpr std::int64_t kMaxTopAlgorithms = 1024;

/// Range of "timeout_s", in s: up to a day.
inline constexpr double kMinTimeout = 0.001;
inline constexpr double kMaxTimeout = 86'400;

/// Largest limit of a tolerance; infinity would not be a gate.
inline constexpr double kMaxToleranceLimit = 1e30;

}  // namespace numcheck::plan
