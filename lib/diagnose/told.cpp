#include "diagnose/told.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/dtype.hpp"
#include "op/gemm.hpp"

namespace numcheck::diagnose {

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
       .is_finding = true});
}

void add_amax(const Subject& subject, const verdict::OutputResult& output, Diagnosis& diagnosis) {
  const std::vector<op::Port> ports = subject.c.op->ports(subject.c.params, *subject.c.mode);
  if (op::port_named(ports, output.port).role != op::Role::amax || output.statistics.worst.empty()) {
    return;
  }
  const metric::Worst& worst = output.statistics.worst.front();
  const bool is_small = worst.got < worst.expected;
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
       .is_finding = true});
}

void add_findings(const verdict::OutputResult& output, double least, bool only_roundings, Diagnosis& diagnosis) {
  for (const op::Finding& finding : output.findings) {
    const bool is_rounding = finding.name == op::kProductRounded || finding.name == op::kSumRounded;
    if (finding.name == op::kRangeOfK) {
      continue;  // another row says it, and is judged
    }
    const bool is_share = is_rounding || (!finding.cause.empty() && !only_roundings);
    if (is_share && finding.measured >= least) {
      diagnosis.passing.push_back({.name = finding.name,
                                   .family = finding.name,
                                   .cause = finding.cause.empty() ? finding.name : finding.cause,
                                   .remedy = finding.text,
                                   .passes = true,
                                   .share = finding.measured,
                                   .failing = {},
                                   .is_finding = true});
    }
  }
}

}  // namespace numcheck::diagnose
