// A case: op + parameters + mode + backend + inputs + environment, fully determined, with one canonical identifier.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/hash.hpp"
#include "data/distribution.hpp"
#include "op/op.hpp"
#include "op/value.hpp"
#include "plan/device_condition.hpp"
#include "plan/diagnostic.hpp"

namespace numcheck::plan {

/// Environment variables that a case sets (value) or unsets (nothing). All others keep the value that they have in the
/// coordinator's environment.
using Environment = std::map<std::string, std::optional<std::string>>;

/// Distribution of every input port; ports not listed use `common`.
struct InputSpec {
  data::Distribution common;
  std::map<std::string, data::Distribution> ports;

  friend bool operator==(const InputSpec&, const InputSpec&) = default;
  [[nodiscard]] const data::Distribution& of(std::string_view port) const;
  /// True if this is the exact leg: the common distribution is "exact".
  [[nodiscard]] bool exact_leg() const { return common.name == "exact"; }
};

/// Which algorithms of the backend run; each is one run in the case's result.
struct AlgorithmSpec {
  enum class Kind { heuristic, top, all } kind = Kind::heuristic;
  std::int64_t top = 1;

  friend bool operator==(const AlgorithmSpec&, const AlgorithmSpec&) = default;
};

/// What a statistic of the op (op::Op::statistics) may be.
struct StatisticLimit {
  std::string name;
  std::optional<double> least, most;

  friend bool operator==(const StatisticLimit&, const StatisticLimit&) = default;
};

/// Gates that the plan adds to the default gates, and what it takes to pass.
struct ToleranceSpec {
  std::optional<double> allclose_rtol;  ///< |d - y| <= atol + rtol |y|
  std::optional<double> allclose_atol;
  std::optional<double> max_ulp;
  std::optional<double> rel_l2;      ///< Frobenius-relative error
  std::optional<double> min_judged;  ///< share of an output's elements that must be judged for it to pass
  std::vector<StatisticLimit> statistics;
};

/// A known failure.
struct XFail {
  std::string reason;
  std::string expires;      ///< ISO date or empty
  DeviceCondition where{};  ///< devices that have the issue
  /// If not empty, only failures with this cause, as a finding names it, are known: a case without them is judged as if
  /// there were no entry.
  std::string cause;
  /// If not empty, only errors and crashes whose message contains this text are known: a library that refuses a case after
  /// it has accepted it, or whose kernel makes an illegal access.
  std::string error{};
  std::string link{};  ///< where to read more; shown, never fetched
  Place place{};       ///< where the entry is written

  /// An entry that expects the whole case to fail, whatever the cause.
  [[nodiscard]] bool expects_failure() const noexcept { return cause.empty() && error.empty(); }
  /// Whether both say the same, wherever they are written.
  bool operator==(const XFail& other) const;
};

struct Case {
  const op::Op* op = nullptr;
  op::Params params;
  const op::Mode* mode = nullptr;
  std::string backend;
  InputSpec inputs;
  std::uint64_t seed = 0;
  bool seed_in_id = false;  ///< the case object chose its own seed (or several), so the id names it
  Environment environment;
  AlgorithmSpec algorithms;
  ToleranceSpec tolerance;
  std::vector<std::string> tags;
  std::vector<XFail> known_issues;  ///< in plan order, those of other devices included
  std::optional<double> timeout_s;
  /// Of "select": the case runs only if it shows a kernel configuration that no earlier one does.
  bool only_if_new = false;

  std::string id;       ///< "gemm/m=128,n=768,k=8192,tb=1/bf16/cublaslt[/algorithms][/inputs][/seed][/env]"
  core::Digest digest;  ///< of everything that determines the numbers
};

/// The known issues of a case on a device. Without a device, those that every device has.
[[nodiscard]] std::vector<XFail> known_issues_on(const Case& c, const std::optional<DeviceFacts>& device);

/// Computes id and digest from the other members. Neither contains defaults of parameters: baselines survive when an op
/// gets a new parameter, but a default must never change once cases have been judged with it. Nor do they contain tags,
/// xfail, tolerance and timeout. Segments after the backend, each only if it says something:
///   algorithms=all, algorithms=top:8
///   exact, outliers(fraction=0.01), a=outliers, uniform,a=constant(value=1)
///   seed=7
///   NVIDIA_TF32_OVERRIDE=0,CUBLAS_WORKSPACE_CONFIG=unset
void identify(Case& c);

/// Everything that determines the numbers (and the id), as one JSON object: what `exec` reads. Round-trips through
/// case_from_json, which throws plan::PlanError on anything illegal.
[[nodiscard]] nlohmann::json case_to_json(const Case& c);

/// Looks up an op by name; passed where JSON must be decoded, because only the catalog knows the ops.
using OpLookup = const op::Op* (*)(std::string_view name);

[[nodiscard]] Case case_from_json(const nlohmann::json& json, OpLookup lookup);

}  // namespace numcheck::plan
