// What was measured for a case, and its verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/device.hpp"
#include "metric/compare.hpp"
#include "metric/error_map.hpp"
#include "metric/wrong_elements.hpp"
#include "model/error_model.hpp"
#include "op/replay.hpp"
#include "plan/case.hpp"
#include "prepare/stage_times.hpp"
#include "tolerance/judge.hpp"
#include "tolerance/vacuity.hpp"
#include "verdict/port_formats.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Statuses of interface.md section 4, spelled as in JSON.
enum class Status { pass, warn, fail, inconclusive, unsupported, skipped, error, crashed, timeout, xfail, xpass };

[[nodiscard]] const char* status_name(Status status) noexcept;

/// Whether its outputs were compared with the reference.
[[nodiscard]] constexpr bool is_judged(Status status) noexcept {
  return status == Status::pass || status == Status::warn || status == Status::fail || status == Status::inconclusive ||
         status == Status::xfail || status == Status::xpass;
}
/// All statuses, in the order of the interface documentation.
[[nodiscard]] std::span<const Status> all_statuses() noexcept;

[[nodiscard]] std::optional<Status> parse_status(std::string_view name) noexcept;

/// A few elements of one matrix of an output.
struct OutputWindow {
  std::int64_t first = 0;  ///< flat logical index of the first element
  std::int64_t rows = 0, cols = 0;
  std::vector<double> got, expected;    ///< row by row
  std::vector<std::uint64_t> got_bits;  ///< as stored
};

/// What is wrong with an output, to look at.
struct OutputPicture {
  metric::ErrorMap map;
  std::optional<OutputWindow> around_worst;  ///< nothing if only a sample is known, or if nothing is wrong
};

/// One output of one run, compared.
struct OutputResult {
  std::string port;
  core::Digest digest;
  metric::Statistics statistics;
  std::vector<tolerance::Criterion> criteria;
  tolerance::Certificate certificate;
  std::string model_source;
  bool sampled = false;
  bool vanishes = false;  ///< zeros are expected everywhere, and the op says that this is no sign of degenerate inputs
  std::vector<op::Finding> findings;  ///< the op's own statistics without a limit
  std::optional<metric::ErrorNorms>
      ideal;  ///< against exact real arithmetic, if the op as implemented rounds or runs a pass in between
  std::optional<metric::ErrorNorms> judged;  ///< the error that is judged, if it is not `statistics.arithmetic`
  std::string judged_note;                   ///< how it differs: "with operands as the run converted them (TF32, ...)"
  std::string ideal_note;                    ///< which rounding or pass that is
  std::string pass;  ///< the op that leaves it for the case's last pass; empty: an output of the last pass
  std::optional<OutputPicture> picture;  ///< of outputs that fail or warn, or of all (EvaluationContext::all_maps)
  std::optional<metric::WrongElements>
      wrong;             ///< judged without declared roundings; nothing if no values in particular are expected
  std::string declared;  ///< what the backend declares and thereby explains the errors of a warning; otherwise empty
  std::optional<op::Replay> replay;  ///< whose bits show what `declared` says, if bits can
  std::string doubt;    ///< what would explain its errors, if only more elements could show it; otherwise empty
  std::string warning;  ///< why a passing output is less precise than its mode promises; otherwise empty
};

/// One run (algorithm) of a case.
struct RunResult {
  worker::RunReport run;
  model::PrecisionClass expected_class = model::PrecisionClass::native;
  std::vector<OutputResult> outputs;
  std::vector<PortFormat> formats;
  Status status = Status::pass;
  std::string
      failing;  ///< the first failing gate: "d: G2 spread 5.8 > 3", and which pass left d if the case has several
  std::vector<std::string> not_told;  ///< op::Mistake::text of those that no output would have shown
};

struct CaseResult {
  const plan::Case* c = nullptr;
  Status status = Status::error;
  std::string reason;  ///< for every status but pass
  std::vector<RunResult> runs;
  std::optional<plan::XFail> known_issue;  ///< the entry that applies
  bool known_issue_expired = false;
  std::vector<plan::XFail> expired_issues;  ///< other entries that are for this case and have expired
  prepare::StageTimes times;
};

}  // namespace numcheck::verdict
