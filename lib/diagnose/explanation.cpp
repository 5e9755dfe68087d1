#include "diagnose/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/cancel.hpp"
#include "core/error.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/subject.hpp"
#include "verdict/evaluate.hpp"

namespace numcheck::diagnose {
namespace {

/// Measured rms of errors by their predicted one; infinity if no gate says it.
double spread_of(const verdict::OutputResult& output) {
  const auto gate = std::ranges::find(output.criteria, "G2 rms", &tolerance::Criterion::name);
  return gate == output.criteria.end() ? std::numeric_limits<double>::infinity() : gate->measured;
}

/// Whether so many more elements have their bits that it is not by chance: half of those that lacked them, or five standard
/// deviations of such a count.
bool gains_bits(const Explanation& result, const Declared& declared) {
  constexpr double kFewest = 4, kDeviations = 5;
  const auto missed = static_cast<double>(result.of - std::min(result.of, declared.equal_bits));
  const double gained = static_cast<double>(result.equal_bits) - static_cast<double>(declared.equal_bits);
  return gained >= std::max(kFewest, std::min(missed / 2, kDeviations * std::sqrt(missed)));
}

}  // namespace

const verdict::OutputResult* output_named(const verdict::RunResult& run, std::string_view port) {
  const auto found = std::ranges::find(run.outputs, port, &verdict::OutputResult::port);
  return found == run.outputs.end() ? nullptr : &*found;
}

const metric::ErrorNorms& error_of(const verdict::OutputResult& output) {
  return output.judged.has_value() ? *output.judged : output.statistics.arithmetic;
}

std::uint64_t unjudged(const verdict::OutputResult& output) {
  const metric::Statistics& s = output.statistics;
  return s.unknown + s.undetermined + s.order_dependent + s.outside;
}

const std::string& family_of(const Hypothesis& hypothesis) {
  return hypothesis.family.empty() ? hypothesis.name : hypothesis.family;
}

Explanation explain(const Subject& subject, const Hypothesis& hypothesis, const Declared& declared, double flops) {
  Explanation result{.name = hypothesis.name,
                     .family = family_of(hypothesis),
                     .cause = hypothesis.cause,
                     .remedy = hypothesis.remedy,
                     .failing = {},
                     .is_fitted = hypothesis.is_fitted,
                     .shared_cause = hypothesis.shared_cause};
  try {
    const verdict::RunResult run = judge(subject, hypothesis.trial, flops, Depth::gates);
    const verdict::OutputResult* output = output_named(run, declared.port);
    if (output == nullptr) {
      throw core::InternalError("this trial has no output " + std::string(declared.port));
    }
    result.failing = verdict::failure_of(*output);
    result.of = output->statistics.elements;
    result.equal_bits = result.of - output->statistics.exact_mismatch;
    if (result.failing.empty() && unjudged(*output) > declared.most_unjudged) {
      result.failing = fmt::format("it says nothing of {} elements", unjudged(*output));
    }
    // Outputs that are moved or drawn have gates of their own, which ask more than a hypothesis can say.
    constexpr std::uint64_t kFewest = 16;
    const bool are_the_bits = result.equal_bits == result.of && result.of >= kFewest && declared.is_exact;
    if (const double z = spread_of(*output); result.failing.empty() && z < hypothesis.least_spread) {
      result.failing = fmt::format("{:.2g} of the errors that it predicts", z);
    }
    result.rms_left = error_of(*output).rms;
    // NaN and infinities that are not there have no error, and explain nothing.
    const bool gains = gains_bits(result, declared);
    const bool has_pattern = output->statistics.nonfinite_mismatch == 0;
    result.share = has_pattern && declared.rms_error > 0 ? 1 - std::pow(result.rms_left / declared.rms_error, 2) : 0;
    // Of a simulated fault, bounds are those of right results.
    constexpr double kNearlyAll = 0.98, kAllError = 1 - 1e-8, kSomething = 0.5;
    const bool has_bits = output->statistics.flip_rate.has_value() &&
                          static_cast<double>(result.equal_bits) >= kNearlyAll * static_cast<double>(result.of);
    const bool is_simulated = !hypothesis.trial.fault.empty();
    const bool is_fault = is_simulated && subject.known == nullptr && result.of >= kFewest && has_pattern &&
                          (has_bits ? result.share > kSomething && gains : result.share >= kAllError);
    // One number fitted to few says nothing.
    constexpr std::uint64_t kFewestAtAll = 3;
    if (result.failing.empty() && (result.of < kFewestAtAll || (hypothesis.is_fitted && result.of < kFewest))) {
      result.failing = fmt::format("{} elements are too few to tell", result.of);
    }
    result.all_gates = result.failing.empty();
    result.passes = result.all_gates || are_the_bits || is_fault;
    result.failing = result.passes ? std::string() : result.failing;
    // Where hardly anything is explained, the hypothesis allows for errors of that size, whatever they are from. Of a
    // simulated device, numbers are rounded to the output's format already: then bits alone tell.
    constexpr double kLittle = 0.5;
    const bool is_rounded = is_simulated && output->statistics.flip_rate.has_value();
    const bool predicts = gains || (!is_rounded && result.share >= kLittle);
    result.is_consistent_only = !are_the_bits && !is_fault && !predicts && declared.has_numbers;
    result.cosine = output->statistics.arithmetic.cosine;
  } catch (const core::Cancelled&) {
    throw;
  } catch (const core::Error& error) {  // one hypothesis less, and not the diagnosis
    result.failing = fmt::format("could not be tried: {}", error.what());
  }
  return result;
}

bool is_open(const Diagnosis& diagnosis) {
  return std::ranges::all_of(diagnosis.passing, &Explanation::is_consistent_only);
}

void keep_best(bool is_narrow, Diagnosis& diagnosis) {
  // Where elements are wrong is no cause if there is one.
  const auto is_place = [](const Explanation& one) { return one.family == kPlaces; };
  if (!std::ranges::all_of(diagnosis.passing, is_place)) {
    std::erase_if(diagnosis.passing, is_place);
  }
  std::ranges::stable_partition(diagnosis.passing, [](const Explanation& one) { return !one.is_fitted; });
  const auto weak =
      std::ranges::stable_partition(diagnosis.passing, [](const Explanation& one) { return !one.is_consistent_only; });
  if (!is_open(diagnosis)) {
    for (Explanation& one : weak) {
      one.failing = "it allows for these errors, and the cause predicts them";
      diagnosis.excluded.push_back(std::move(one));
    }
    diagnosis.passing.erase(weak.begin(), weak.end());
  }
  std::ranges::stable_partition(diagnosis.passing, [](const Explanation& one) { return one.family == kOneNumber; });
  if (!is_narrow || diagnosis.passing.size() < 2) {
    return;
  }
  const auto missed = [](const Explanation& one) { return one.of - one.equal_bits; };
  const std::uint64_t fewest = missed(*std::ranges::min_element(diagnosis.passing, {}, missed));
  constexpr std::uint64_t kChance = 16;
  const auto worse = std::ranges::stable_partition(
      diagnosis.passing, [&](const Explanation& one) { return missed(one) <= 2 * fewest + kChance; });
  for (Explanation& one : worse) {
    one.failing = fmt::format("{} elements have other bits, and {} of the cause", missed(one), fewest);
    diagnosis.excluded.push_back(std::move(one));
  }
  diagnosis.passing.erase(worse.begin(), worse.end());
}

}  // namespace numcheck::diagnose
