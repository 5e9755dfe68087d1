// What changed between two reports: the verdict of te-numcheck compare.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// What became of a case, in the order in which changes are shown. Good statuses are pass, warn and inconclusive, bad ones
/// fail, error, crashed, timeout and xpass; xfail is in between.
enum class Change : std::uint8_t {
  newly_failing,  ///< bad now, and not before: it was good or excused, did not run, or was not there
  gone,           ///< ran before; now it is not there, unsupported or skipped
  worse,  ///< other bits, and error/limit grew beyond the ratio; "crashed" after "fail"; inconclusive after a verdict; an
          ///< output without gates that the base has
  restated,  ///< not worse, but of another status: "warn" or "xfail" after "pass", "inconclusive" after "fail"; or excused
             ///< with another gate closest to its limit, or furthest beyond it
  better,     ///< other bits, and error/limit shrank beyond the ratio
  same,       ///< other bits, and about as good
  fixed,      ///< bad before, good now
  appeared,   ///< good now, and not run before
  identical,  ///< the same bits in every output, or not run in either
};
inline constexpr std::size_t kChanges = 9;

/// "newly failing", "gone", "worse", "changed status", "better", "same", "fixed", "new", "identical".
[[nodiscard]] std::string_view change_name(Change change) noexcept;

struct CaseChange {
  std::string digest;
  std::string id;
  Change change = Change::identical;
  std::string base_status;  ///< empty: not in that report
  std::string new_status;
  /// Largest error/limit of all outputs and runs, but of what is worse that of the gates that are: those in which the output's
  /// own rounding takes up to all of the limit, or the others. NaN if nothing was judged.
  double base_ratio = 0;
  double new_ratio = 0;
  std::set<std::string> outputs;  ///< whose bits changed
  std::string implementation;     ///< "algo 67 -> algo 71" if another one ran; empty otherwise
  std::string reason;             ///< of the new status, or else of the old one; may be empty
  bool gates = false;             ///< a regression; not what is excused
};

/// What is compared, and what else differs between the runs.
struct Comparison {
  std::vector<CaseChange> cases;  ///< of the new report, in its order; then those that are gone
  std::array<std::size_t, kChanges> counts{};
  std::size_t regressions = 0;
  std::size_t joined = 0;             ///< cases that both reports have
  std::size_t verified = 0;           ///< of those, the ones that ran in the new one
  std::vector<std::string> settings;  ///< "driver: 570.1 -> 580.2", "the new run was interrupted"

  /// "2 newly failing, 1 gone, 14 changed bits, 1102 identical".
  [[nodiscard]] std::string sentence() const;
};

struct ComparisonOptions {
  double allow_worse = 1.1;    ///< growth of error/limit that is no regression
  bool allow_missing = false;  ///< cases that are gone are no regression
  bool only_new = false;       ///< cases that the new report lacks do not count: they were not selected
  bool skip_skipped = false;   ///< nor do those that it skipped
};

/// Joins the cases by digest. Regressions are cases that fail newly, those that are gone, and all that are worse. Both may
/// be brief reports, in which numbers have six digits. Throws core::IoError if a report lacks what is
/// compared, or has a digest twice.
[[nodiscard]] Comparison compare_reports(const nlohmann::json& base, const nlohmann::json& now,
                                         const ComparisonOptions& options);

/// {"schema": "te-numcheck/comparison", "schema_version", "sentence", "summary", "settings", "cases"}: of the cases all but
/// the identical ones.
[[nodiscard]] nlohmann::json comparison_json(const Comparison& comparison);

inline constexpr std::string_view kComparisonSchemaName = "te-numcheck/comparison";
inline constexpr std::string_view kComparisonSchemaVersion = "1.0.0";
/// The most regressions that a run's own record lists.
inline constexpr std::size_t kRecordedRegressions = 100;

/// "comparison" of a run that was compared with a baseline: {"baseline", "sentence", "summary", "settings", "regressions"},
/// of the cases only the first regressions.
[[nodiscard]] nlohmann::json comparison_record(const Comparison& comparison, const std::string& baseline);

/// JSON Schema (draft-07) of comparison_json.
[[nodiscard]] nlohmann::json comparison_schema();
/// Of comparison_record, for the schema of reports, which defines "number".
[[nodiscard]] nlohmann::json comparison_record_definition();

}  // namespace numcheck::report
