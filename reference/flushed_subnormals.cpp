#include "reference/flushed_subnormals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "reference/cause.hpp"
#include "reference/tracked_output.hpp"
#include "tolerance/flushable.hpp"

namespace numcheck::reference {
namespace {

bool is_broken(double got, double expected) {
  return (!std::isfinite(got) || !std::isfinite(expected)) && got != expected &&
         !(std::isnan(got) && std::isnan(expected));
}

/// What rounding a result of that magnitude to the output's format may add. FP32's is part of the bound.
double rounding(double magnitude, const op::Delivered& output) {
  const bool rounds = std::isfinite(magnitude) && core::dtype_info(output.dtype).storage_bytes < 4;
  return rounds ? core::ulp(magnitude * output.scale, output.dtype) / output.scale / 2 : 0;
}

/// Whether flushes that may take `lost` from y account for what was `got` instead, which is off by more than it may be: by about as
/// much as they may take, because a result that is off by little where they may take much has another cause; of sums of subnormal
/// numbers, by any part of it. Where they may leave anything, that is y itself, and a zero for a subnormal y needs no more.
bool accounts(double got, double allowed, double lost, double y) {
  constexpr double kLeast = 1.0 / 16;  // of what is lost: terms may cancel, and not all need be flushed
  constexpr double kTiny = 0x1p-100;
  if (got == 0 && std::fabs(y) < tolerance::kMayFlush) {
    return true;
  }
  const double off = std::fabs(got - y);
  const double taken = lost < TrackedOutput::kMaxBound ? lost : std::max(std::fabs(y), tolerance::kMayFlush);
  return off <= allowed + taken && (taken < kTiny || off + allowed >= kLeast * taken);
}

struct Count {
  double wrong = 0, explained = 0;
};

struct Counts {
  Count numbers, pattern;
};

Counts count(const op::Delivered& output, const op::OutputValues& expected, const op::OutputValues& flushed) {
  Counts counts;
  for (std::size_t at = 0; at < output.value.size(); ++at) {
    const double got = output.value[at], y = expected.value[at];
    const auto bound = static_cast<double>(expected.magnitude[at]);
    const auto lost = static_cast<double>(flushed.magnitude[at]);
    if (std::isfinite(y) && !(bound < TrackedOutput::kMaxBound)) {
      continue;  // any result is right
    }
    if (is_broken(got, y)) {
      counts.pattern.wrong += 1;
      const bool may_be_nan = lost >= TrackedOutput::kMaxBound || flushed.deviation[at] > 0;
      counts.pattern.explained += may_be_nan ? 1 : 0;
    } else if (std::isfinite(got)) {
      const double off = std::fabs(got - y);
      const bool wrong = off > bound + rounding(std::fabs(y), output);
      const double most = bound + rounding(std::max(std::fabs(got), std::fabs(y)), output);
      counts.numbers.wrong += wrong ? 1 : 0;
      counts.numbers.explained += wrong && accounts(got, most, lost, y) ? 1 : 0;
    }
  }
  return counts;
}

}  // namespace

void explain_flushes(const op::FindingRequest& request, op::Values (*losses)(const op::ReferenceRequest&),
                     std::vector<op::Finding>& findings) {
  if (!request.sample->all()) {
    return;
  }
  const op::Values flushed =
      losses({.params = request.params, .inputs = {request.inputs.begin(), request.inputs.end()}});
  for (const op::Delivered& output : request.outputs) {
    const auto expected = std::ranges::find(request.expected->outputs, output.port, &op::OutputValues::port);
    const auto other = std::ranges::find(flushed.outputs, output.port, &op::OutputValues::port);
    if (expected == request.expected->outputs.end() || other == flushed.outputs.end() ||
        expected->value.size() != output.value.size() || expected->magnitude.empty()) {
      continue;  // an amax, of which only the tensor is expected
    }
    const Counts counts = count(output, *expected, *other);
    const auto add = [&](const Count& of, op::Finding::About about) {
      if (of.explained / of.wrong >= kLeastExplained) {
        findings.push_back(cause_finding(op::kSubnormalsAsZeros, output.port, of.explained / of.wrong,
                                         "subnormal numbers are taken for zero", "what is wrong", about));
      }
    };
    add(counts.numbers, op::Finding::About::numbers);
    add(counts.pattern, op::Finding::About::pattern);
  }
}

}  // namespace numcheck::reference
