// The sections of the HTML view, one file each. They take full and brief reports; one that has nothing to show is empty.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/case_facts.hpp"

namespace numcheck::report::views {

/// What all sections are made of.
struct HtmlSource {
  explicit HtmlSource(const nlohmann::json& of_report);

  const nlohmann::json& report;
  const nlohmann::json& cases;
  std::vector<CaseFacts> facts;      ///< parallel to the cases
  std::vector<std::string> digests;  ///< shortest that are unique, parallel to the cases
};

/// Anchors within the page.
[[nodiscard]] std::string case_anchor(const std::string& digest);                        ///< details of a case
[[nodiscard]] std::string group_anchor(const std::string& op, const std::string& mode);  ///< the rows of an op and mode

/// Whether a status deserves more than a row of the table.
[[nodiscard]] bool is_notable(const std::string& status);

[[nodiscard]] std::string verdict_section(const HtmlSource& source);   ///< a sentence and counts by status
[[nodiscard]] std::string matrix_section(const HtmlSource& source);    ///< op x mode, worst error/limit
[[nodiscard]] std::string gates_section(const HtmlSource& source);     ///< --fail-on, budget, contract, baseline
[[nodiscard]] std::string failures_section(const HtmlSource& source);  ///< causes, then cases with pictures
[[nodiscard]] std::string charts_section(const HtmlSource& source);    ///< error/limit against k, ulps, z
[[nodiscard]] std::string series_section(const HtmlSource& source);    ///< statistics over the steps of a case
[[nodiscard]] std::string override_section(const HtmlSource& source);
[[nodiscard]] std::string libraries_section(const HtmlSource& source);
[[nodiscard]] std::string precision_section(const HtmlSource& source);
[[nodiscard]] std::string cases_section(const HtmlSource& source);     ///< a row each, in groups
[[nodiscard]] std::string not_told_section(const HtmlSource& source);  ///< mistakes in formulas that would pass, too
[[nodiscard]] std::string times_section(const HtmlSource& source);
[[nodiscard]] std::string machine_section(const HtmlSource& source);

}  // namespace numcheck::report::views
