#include "diagnose/told.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/dtype.hpp"
#include "op/known_cause.hpp"

namespace numcheck::diagnose {

std::span<const ToldCause> told_causes() {
  static constexpr std::array kAll = {
      ToldCause{"not_written", "elements that still hold what the output was filled with before the run"},
      ToldCause{"stale_amax", "a maximum below that of the output which it is of"},
      ToldCause{"amax_too_large", "a maximum above that of the output which it is of"},
      ToldCause{"written_outside", "memory outside the tensors that the run wrote (of cases that te-numcheck runs)"},
      ToldCause{"input_overwritten", "an input that the run changed (of cases that te-numcheck runs)"},
      ToldCause{"block_scaled=FACTOR", "64 successive queries or keys of one head, or a whole head, times that factor"},
      ToldCause{"runs_differ", "other bits when the run is repeated (of cases that te-numcheck runs)"}};
  return kAll;
}

void add_unwritten(const Subject& subject, const verdict::OutputResult& output, Diagnosis& diagnosis) {
  // Of 8 bits, the pattern is the NaN that the format has.
  const std::vector<op::Port> ports = subject.c.op->ports(subject.c.params, *subject.c.mode);
  const bool has_own = core::dtype_info(op::port_named(ports, output.port).dtype).storage_bytes > 1;
  if (output.statistics.poison == 0 || !has_own) {
    return;
  }
  diagnosis.passing.push_back(
      {.name = "not_written",
       .family = "not_written",
       .cause = fmt::format("{} of {} elements of {} were not written", output.statistics.poison,
                            output.statistics.elements, output.port),
       .remedy = "Look for a tile, a tail or an empty group that no block of the kernel covers.",
       .passes = true,
       .share = 1,
       .failing = {},
       .is_finding = true,
       .shared_cause = fmt::format("elements of {} were not written", output.port)});
}

bool add_conduct(const Subject& subject, Diagnosis& diagnosis) {
  const Conduct& conduct = subject.conduct;
  const auto add = [&](const std::string& name, const std::string& cause, const std::string& remedy) {
    Explanation told{.name = name, .family = name, .cause = cause, .remedy = remedy, .failing = {}};
    told.passes = told.is_finding = true;
    told.share = 1;
    diagnosis.passing.push_back(std::move(told));
  };
  const std::string where = conduct.detail.empty() ? std::string() : ": " + conduct.detail;
  if (!conduct.guards_intact) {
    add("written_outside", "the run wrote outside its tensors" + where,
        "Look for a tail tile without a bounds check, and for a workspace that is smaller than asked for; "
        "compute-sanitizer --tool memcheck names the kernel (run te-numcheck with --in-process).");
  }
  if (!conduct.inputs_intact) {
    add("input_overwritten", "the run changed one of its inputs" + where,
        "Look for an in-place operation, and for buffers that overlap.");
  }
  if (!conduct.repeats) {
    add("runs_differ", "the same inputs gave other bits when the run was repeated",
        "Look for a race (compute-sanitizer --tool racecheck), for memory that is read before it is written "
        "(--tool initcheck), or for sums by atomics: ask for the deterministic algorithm.");
  }
  return !diagnosis.passing.empty();
}

void add_findings(const verdict::OutputResult& output, double least, bool only_roundings, Diagnosis& diagnosis) {
  for (const op::Finding& finding : output.findings) {
    const bool is_rounding = finding.name == op::kProductRounded.name || finding.name == op::kSumRounded.name ||
                             finding.name == op::kSlicesOverflow.name;
    if (finding.name == op::kRangeOfK.name) {
      continue;  // another row says it, and is judged
    }
    // Why elements are NaN or infinite says more than that they all are.
    const bool is_told = is_rounding || finding.about == op::Finding::About::pattern || !only_roundings;
    const bool is_share = is_rounding || (!finding.cause.empty() && is_told);
    const op::KnownCause* known = op::find_known_cause(finding.name);
    if (is_share && finding.measured >= least) {
      diagnosis.passing.push_back({.name = finding.name,
                                   .family = finding.name,
                                   .cause = finding.cause.empty() ? finding.name : finding.cause,
                                   .remedy = known == nullptr ? finding.text : std::string(known->remedy),
                                   .passes = true,
                                   .share = finding.measured,
                                   .failing = {},
                                   .is_finding = true});
    }
  }
}

void add_block(const verdict::OutputResult& output, Diagnosis& diagnosis) {
  const metric::BlockSlope& block = output.statistics.block;
  const std::int64_t end = block.first_row + block.rows - 1;
  // Of sum e^2 / V the part s^2 sum y^2 / V of the block, at least.
  const double explained = std::pow(block.slope / block.independent, 2);
  const double all = std::pow(output.statistics.z_rms, 2) * static_cast<double>(output.statistics.counted());
  diagnosis.passing.push_back(
      {.name = fmt::format("block_scaled={:.6g}", 1 + block.slope),
       .family = "block_scaled",
       .cause = fmt::format("rows {} to {} of head {}, matrix {} (all from 0) of {} are {:.3g} % too {} on average",
                            block.first_row, end, block.head, block.matrix, output.port, 100 * std::fabs(block.slope),
                            block.slope > 0 ? "large" : "small"),
       .remedy =
           "Look at what only this head or tile is multiplied by: its scale, its row sums, its share of a reduction.",
       .passes = true,
       .share = std::min(1.0, explained / all),
       .failing = {},
       .is_finding = true});
}

namespace {

/// Whether an amax is within its own bound, and as it would be stored the number that is expected: then codes are not.
bool is_as_expected(const verdict::OutputResult& amax, const metric::Worst& worst) {
  constexpr double kHalfCode = 0x1p-4;  // of three fraction bits
  return amax.statistics.max_over_bound <= 1 &&
         std::fabs(worst.got - worst.expected) <= kHalfCode * std::fabs(worst.expected);
}

/// Whether the tensor that an amax is of holds such a number: then the tensor is wrong, and the amax right about it.
bool tensor_holds(const Subject& subject, std::string_view amax, double magnitude) {
  constexpr std::string_view kSuffix = "_amax";
  constexpr double kCode = 0x1p-3;  // between codes of two fraction bits
  if (!amax.ends_with(kSuffix)) {
    return false;
  }
  const std::string_view tensor = amax.substr(0, amax.size() - kSuffix.size());
  if (!subject.outputs.contains(tensor)) {
    return false;
  }
  const core::Buffer<double> numbers = delivered_numbers(subject, tensor);
  double largest = 0;
  for (const double number : numbers.span()) {
    largest = std::fmax(largest, std::fabs(number));
  }
  return std::fabs(largest - magnitude) <= kCode * magnitude;
}

}  // namespace

void add_amax(const Subject& subject, const verdict::OutputResult& output, Diagnosis& diagnosis) {
  const std::vector<op::Port> ports = subject.c.op->ports(subject.c.params, *subject.c.mode);
  if (op::port_named(ports, output.port).role != op::Role::amax || output.statistics.worst.empty()) {
    return;
  }
  constexpr double kMost = 0.9;
  add_findings(output, kMost, false, diagnosis);  // whose numbers it counts is the better answer
  if (!diagnosis.passing.empty()) {
    return;
  }
  const metric::Worst& worst = output.statistics.worst.front();
  const bool is_small = worst.got < worst.expected;
  if (is_as_expected(output, worst) || (!is_small && tensor_holds(subject, output.port, worst.got))) {
    return;
  }
  diagnosis.passing.push_back(
      {.name = is_small ? "stale_amax" : "amax_too_large",
       .family = "amax",
       .cause =
           fmt::format("{} is {:.6g}, and the largest magnitude {:.6g}: {}", output.port, worst.got, worst.expected,
                       is_small ? "it is that of an earlier tensor, or of a part of this one"
                                : "it counts numbers that are not in the tensor, or is of an earlier one"),
       .remedy = "Look at when the maximum is reset, and at which elements and blocks take part in it.",
       .passes = true,
       .share = 1,
       .failing = {},
       .is_finding = true,
       .shared_cause =
           fmt::format("{} is {} than the largest magnitude", output.port, is_small ? "smaller" : "larger")});
}

}  // namespace numcheck::diagnose
