// The reports of a run's shards, joined into one.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace numcheck::report {

struct NamedReport {
  std::string name;  ///< of its file, for messages
  nlohmann::json report;
};

/// The report that a run without shards would have given, but for times, its start and its command line: cases in plan
/// order, with summary and tables computed anew. "shards" tells when and on what each of them ran. All may be brief, or
/// none; those of a plan that chooses cases by kernel configuration count each configuration once.
///
/// Throws core::UsageError with a sentence for everything that is wrong unless they are all the shards of one selection
/// of one plan, each once and complete, run by the same build of the program with the same settings on the same kind of
/// device with the same driver, libraries and variables. Variables that choose a device may differ. Throws core::IoError
/// if a report lacks what is merged.
[[nodiscard]] nlohmann::json merge_reports(std::vector<NamedReport> reports);

}  // namespace numcheck::report
