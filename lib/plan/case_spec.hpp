// One object of a plan's "cases", decoded but not expanded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/case.hpp"
#include "plan/match.hpp"
#include "plan/node.hpp"
#include "plan/plan.hpp"
#include "plan/reporter.hpp"
#include "plan/values.hpp"

namespace numcheck::plan {

struct XFailRule {
  Match match;
  XFail xfail;
};

/// A case object combined with the plan's defaults. Every vector is an axis with at least one value.
struct CaseSpec {
  const Node* node = nullptr;              ///< the case object
  const Node* params_node = nullptr;       ///< its parameters, for cross-field mistakes
  const Node* inherited_params = nullptr;  ///< parameters in the defaults, if any of them is used
  const op::Op* op = nullptr;
  std::vector<ValueAxis> params;  ///< one per field of the op
  std::vector<InputSpec> inputs;
  std::vector<const Node*> input_nodes;  ///< parallel to inputs; null for the default
  std::vector<const op::Mode*> modes;
  std::vector<std::string> backends;
  std::vector<std::uint64_t> seeds;  ///< empty: the plan's seed
  std::vector<Environment> environments;
  std::vector<std::vector<std::string>> zip;  ///< groups of axis names, already checked
  std::vector<Match> exclude;
  std::vector<XFailRule> xfail;
  AlgorithmSpec algorithms;
  ToleranceSpec tolerance;
  std::vector<std::string> tags;
  std::optional<double> timeout_s;
  bool only_if_new = false;

  /// Number of cases before `exclude`; saturates.
  [[nodiscard]] std::uint64_t count() const;
};

/// One axis of a sweep: "m", ..., "inputs", "mode", "backend", "seed", "environment".
struct AxisInfo {
  std::string_view name;
  std::uint64_t count = 1;
};

/// The axes in nesting order, outermost first.
[[nodiscard]] std::vector<AxisInfo> axes_of(const CaseSpec& spec);

/// The axes in groups that advance together: those of a zip, otherwise each on its own. Indices into axes_of.
[[nodiscard]] std::vector<std::vector<std::size_t>> axis_groups(const CaseSpec& spec);

/// Keys that a case object, and "defaults", may have.
[[nodiscard]] std::span<const std::string_view> case_keys() noexcept;

/// Decodes one case object; `defaults` may be null. Returns nothing if a mistake was reported.
[[nodiscard]] std::optional<CaseSpec> decode_case(const Node& node, const Node* defaults, const Vocabulary& vocabulary,
                                                  Reporter& reporter);

/// Reports mistakes in "defaults" that no case would reveal, because none uses that value.
void check_defaults(const Node& defaults, const Vocabulary& vocabulary, Reporter& reporter);

}  // namespace numcheck::plan
