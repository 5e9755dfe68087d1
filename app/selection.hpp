// Which cases of a plan run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli_forward.hpp"
#include "core/hash.hpp"
#include "plan/case.hpp"
#include "report/report.hpp"

namespace numcheck::app {

/// The selection options, as text.
struct SelectionOptions {
  std::vector<std::string> filters;   ///< regular expressions on the identifier; all must match
  std::vector<std::string> excludes;  ///< none may match
  std::vector<std::string> ops;
  std::vector<std::string> modes;
  std::vector<std::string> backends;
  std::vector<std::string> tags;
  std::vector<std::string> cases;   ///< identifiers or prefixes of digests
  std::string named_by = "--case";  ///< what named them, for messages
  std::string failed_in;            ///< path of a report
  std::string sample;
  std::string shard;
};

void add_selection_options(CLI::App& cli, SelectionOptions& options);

struct Selection {
  std::vector<plan::Case> cases;  ///< in plan order
  report::ShardFacts shard;
  std::vector<std::string> notes;  ///< what a user would want to know of the choice
};

/// The case that an identifier, or a digest's first 4 or more digits, names. Throws core::UsageError if there is none,
/// or several; `by` is what named it.
[[nodiscard]] core::Digest named_case(const std::vector<plan::Case>& cases, const std::string& name,
                                      const std::string& by);

/// Why --backend leaves no case although each has a backend, as a sentence: they say "auto", which is a name like any
/// other. Empty if that is not why.
[[nodiscard]] std::string auto_backend_hint(const std::vector<plan::Case>& all, const SelectionOptions& options);

/// Applies the options; --sample and --shard last. An empty result is not an error here. Throws core::UsageError on an
/// invalid expression, an unknown op, mode, backend or tag, an ambiguous digest, a --case that names nothing, or a
/// --failed-in that is not a report.
[[nodiscard]] Selection select(std::vector<plan::Case> cases, const SelectionOptions& options);

/// Whether all cases of the selection are in other shards: then there is nothing to do, which is no mistake.
[[nodiscard]] bool is_empty_shard(const Selection& selection) noexcept;

/// Why a selection without cases of a plan of `expanded` cases has none.
[[nodiscard]] std::string nothing_to_run(const Selection& selection, std::size_t expanded, const std::string& hint);

}  // namespace numcheck::app
