// What gates besides the verdicts hold against cases: --fail-on, a contract, a baseline.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/summary.hpp"

namespace numcheck::report {

/// What a gate found.
struct GateFinding {
  std::string name;     ///< identifier of the case, or what else it is about
  std::string type;     ///< "warn", "unsupported", "newly failing"
  std::string message;  ///< one line
};

/// Adds "gates": {"fail_on": [statuses]} to a report, unless the policy fails no further status: its exit code must be
/// explained by the record.
void record_gates(nlohmann::json& report, const GatePolicy& policy);

/// Of one report, which must outlive it.
class GateFindings {
 public:
  /// Throws nlohmann::json::exception if the report's gates lack something.
  explicit GateFindings(const nlohmann::json& report);

  /// Why this case of the report fails the run, beyond its verdict; mostly empty.
  [[nodiscard]] std::vector<GateFinding> of(const nlohmann::json& record) const;

  /// What is about no case of the report: promised cases that it does not have, and regressions that it only counts.
  [[nodiscard]] const std::vector<GateFinding>& elsewhere() const noexcept { return elsewhere_; }

 private:
  void add_contract(const nlohmann::json& contract);
  void add_comparison(const nlohmann::json& comparison, const std::set<std::string_view>& digests);

  std::set<std::string_view> fail_on_;
  std::map<std::string_view, const nlohmann::json*> promises_;     ///< by identifier
  std::map<std::string_view, const nlohmann::json*> regressions_;  ///< by digest
  std::vector<GateFinding> elsewhere_;
};

}  // namespace numcheck::report
