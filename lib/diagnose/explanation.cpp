#include "diagnose/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/cancel.hpp"
#include "core/codec.hpp"
#include "core/dtype.hpp"
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

/// Whether fewer elements than count as a sample say as much as one: their bits were predicted before anybody saw them.
bool are_telling(const Subject& subject, const Hypothesis& hypothesis, const Explanation& result,
                 std::string_view port) {
  constexpr std::uint64_t kFewestBits = 20;  // by chance one in a million
  const op::Port given = op::port_named(subject.c.op->ports(subject.c.params, *subject.c.mode), port);
  const auto bits = result.of * static_cast<std::uint64_t>(core::dtype_info(given.dtype).fraction_bits);
  if (hypothesis.is_fitted || hypothesis.is_measured || result.equal_bits != result.of || bits < kFewestBits) {
    return false;
  }
  const core::Buffer<double> numbers = delivered_numbers(subject, port);  // 0 and NaN come of many things
  return std::ranges::all_of(numbers.span(), [](double d) { return d != 0 && std::isfinite(d); });
}

/// Whether the hypothesis leaves another output wrong. Bounds are those of right results, so that of a simulated fault the
/// error that is left decides.
bool is_left_wrong(const verdict::OutputResult& output, const verdict::OutputResult* declared, bool is_simulated) {
  constexpr double kAllError = 1 - 1e-8;
  if (verdict::failure_of(output).empty()) {
    return false;
  }
  const double before = declared == nullptr ? 0 : error_of(*declared).rms;
  const bool is_explained = output.statistics.nonfinite_mismatch == 0 && before > 0 &&
                            1 - std::pow(error_of(output).rms / before, 2) >= kAllError;
  return !(is_simulated && (is_explained || output.statistics.exact_mismatch == 0));
}

/// Whether an output is the maximum of the one that is explained, of which it has the numbers before they are rounded, or moved:
/// what becomes of them then says nothing of it.
bool is_of_unrounded(const Subject& subject, const Trial& trial, const Declared& declared, std::string_view output) {
  const op::Port port = op::port_named(subject.c.op->ports(trial.c.params, *trial.c.mode), output);
  return port.role == op::Role::amax && port.of == declared.port && (trial.then || trial.fault.has_value());
}

/// Elements of a drawn output that are, bit for bit, what the trial predicts. Only simulated draws and what nobody drew predict
/// any: gates take every number for possible, and references have none.
std::uint64_t equal_draws(const Subject& subject, const Hypothesis& hypothesis, std::string_view port, double flops) {
  const bool predicts = hypothesis.trial.fault.has_value() || hypothesis.family == kOneNumber;
  if (!predicts) {
    return 0;
  }
  const Expected expected = expect(subject, hypothesis.trial, flops);
  const auto values = std::ranges::find(expected.values->outputs, port, &op::OutputValues::port);
  const core::Buffer<double> delivered = delivered_numbers(subject, port);
  const op::Port stored = op::port_named(subject.c.op->ports(subject.c.params, *subject.c.mode), port);
  std::uint64_t equal = 0;
  if (values == expected.values->outputs.end() || values->value.size() != delivered.size()) {
    return equal;
  }
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    const double predicted = core::round_to(values->value[i], stored.dtype);
    equal += predicted == delivered[i] || (std::isnan(predicted) && std::isnan(delivered[i])) ? 1 : 0;
  }
  return equal;
}

/// What the hypothesis says of the outputs besides the one that it is to explain.
void look_at_others(const Subject& subject, const Trial& trial, const verdict::RunResult& run, const Declared& declared,
                    Explanation& result) {
  for (const verdict::OutputResult& output : run.outputs) {
    const verdict::OutputResult* before = declared.run == nullptr ? nullptr : output_named(*declared.run, output.port);
    const bool is_right = before != nullptr && verdict::failure_of(*before).empty();
    if (output.port == declared.port || !is_left_wrong(output, before, trial.fault.has_value()) ||
        (is_right && is_of_unrounded(subject, trial, declared, output.port))) {
      continue;
    }
    ++result.others_wrong;
    if (is_right && result.contradicts.empty()) {
      result.contradicts = verdict::failure_of(output);
    }
  }
}

/// A number that was fitted to this output alone explains nothing if another one, which is right, is wrong with it.
void refute(const Hypothesis& hypothesis, Explanation& result) {
  if (result.passes && hypothesis.is_measured && !result.contradicts.empty()) {
    result.passes = result.all_gates = false;
    result.failing = result.contradicts + " under it, which is right as declared";
    result.applied = nullptr;
  }
}

/// Whether it says too little, or too much: that another output is wrong, too, which is right.
bool is_weak(const Explanation& one) {
  return one.is_consistent_only || !one.contradicts.empty();
}

/// What is left without the hypothesis. Of a simulated fault that is what the simulated device without it leaves, whose bounds
/// are as wide: where outputs have few bits, it alone explains many errors.
struct Baseline {
  double rms_error;
  std::uint64_t equal_bits;
  bool passes = false;

  Baseline(const Declared& declared, bool is_fault) : rms_error(declared.rms_error), equal_bits(declared.equal_bits) {
    if (is_fault && declared.simulated != nullptr && declared.simulated->of > 0) {
      rms_error = std::min(rms_error, declared.simulated->rms_left);
      equal_bits = std::max(equal_bits, declared.simulated->equal_bits);
      passes = declared.simulated->all_gates;
    }
  }
};

/// Its bits, in place of those of the result without intermediate roundings.
void take_replay(const op::Replay& replay, const Hypothesis& hypothesis, Explanation& result) {
  if (hypothesis.family == kRoundedSlices && replay.slices != hypothesis.trial.rounding.slices) {
    result.failing = fmt::format("the bits are those of {} slices", replay.slices);
    return;
  }
  result.replay = replay;
  if (replay.elements > 0) {  // of large outputs some are replayed
    result.equal_bits = static_cast<std::uint64_t>(replay.share * static_cast<double>(result.of));
  }
}

/// Takes out what passes and `is_worse`, and says why.
template <class IsWorse, class Why>
void exclude(Diagnosis& diagnosis, const IsWorse& is_worse, const Why& why) {
  const auto worse = std::ranges::stable_partition(diagnosis.passing,
                                                   [&](const Explanation& one) { return !std::invoke(is_worse, one); });
  for (Explanation& one : worse) {
    one.failing = why(one);
    diagnosis.excluded.push_back(std::move(one));
  }
  diagnosis.passing.erase(worse.begin(), worse.end());
}

}  // namespace

bool gains_bits(std::uint64_t equal, std::uint64_t before, std::uint64_t of) {
  constexpr double kFewest = 4, kDeviations = 5;
  const auto missed = static_cast<double>(of - std::min(of, before));
  const double gained = static_cast<double>(equal) - static_cast<double>(before);
  return gained >= std::max(kFewest, std::min(missed / 2, kDeviations * std::sqrt(missed)));
}

std::string evidence_of(const op::Replay& replay) {
  return fmt::format("computed again so, {} of {} elements have the same bits", replay.equal, replay.elements);
}

Explanation unjudged_explanation(const Hypothesis& hypothesis) {
  return {.name = hypothesis.name,
          .family = family_of(hypothesis),
          .cause = hypothesis.cause,
          .remedy = hypothesis.remedy,
          .failing = {},
          .is_fitted = hypothesis.is_fitted,
          .shared_cause = hypothesis.shared_cause};
}

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
  Explanation result = unjudged_explanation(hypothesis);
  try {
    const verdict::RunResult run = judge(subject, hypothesis.trial, flops, Depth::gates);
    const verdict::OutputResult* output = output_named(run, declared.port);
    if (output == nullptr) {
      throw core::InternalError("this trial has no output " + std::string(declared.port));
    }
    result.failing = verdict::failure_of(*output);
    result.of = output->statistics.elements;
    result.equal_bits = declared.is_drawn ? equal_draws(subject, hypothesis, declared.port, flops)
                                          : result.of - output->statistics.exact_mismatch;
    // Elements that any number may be in are predicted all the same if their bits are; but not those that do not count.
    const std::uint64_t not_compared = output->statistics.outside + output->statistics.unknown;
    const bool are_predicted = result.equal_bits == result.of && not_compared <= declared.most_unjudged;
    if (result.failing.empty() && unjudged(*output) > declared.most_unjudged && !are_predicted) {
      result.failing = fmt::format("it says nothing of {} elements", unjudged(*output));
    }
    // Integers leave no room for errors: what allows for some, because its own factors are none, predicts nothing.
    if (result.failing.empty() && subject.c.inputs.exact_leg() && result.equal_bits != result.of) {
      result.failing =
          fmt::format("{} elements have other bits, and sums of integers are exact", result.of - result.equal_bits);
    }
    // Outputs that are moved or drawn have gates of their own, which ask more than a hypothesis can say.
    constexpr std::uint64_t kFewest = 16;
    const bool are_the_bits = result.equal_bits == result.of && result.of >= kFewest && declared.is_exact;
    if (output->replay.has_value() && result.failing.empty()) {
      take_replay(*output->replay, hypothesis, result);
    }
    const bool is_shown = result.replay.has_value();
    if (const double z = spread_of(*output); result.failing.empty() && !is_shown && z < hypothesis.least_spread) {
      result.failing = fmt::format("{:.2g} of the errors that it predicts", z);
    }
    result.rms_left = error_of(*output).rms;
    // NaN and infinities that are not there have no error, and explain nothing.
    const Baseline baseline(declared, hypothesis.trial.fault.has_value());
    // Elements that any number may be in count as equal, which nobody has predicted.
    const std::uint64_t unpredicted = unjudged(*output) - std::min(unjudged(*output), declared.unjudged);
    const std::uint64_t predicted = result.equal_bits - std::min(result.equal_bits, are_predicted ? 0 : unpredicted);
    const bool gains = gains_bits(predicted, baseline.equal_bits, result.of);
    const bool has_pattern = output->statistics.nonfinite_mismatch == 0;
    const auto share_of = [&](double rms) {
      return has_pattern && rms > 0 ? 1 - std::pow(result.rms_left / rms, 2) : 0;
    };
    result.share = share_of(declared.rms_error);
    // Of a simulated fault, bounds are those of right results.
    constexpr double kNearlyAll = 0.98, kAllError = 1 - 1e-8, kSomething = 0.5;
    const bool has_bits = output->statistics.flip_rate.has_value() &&
                          static_cast<double>(result.equal_bits) >= kNearlyAll * static_cast<double>(result.of);
    const bool is_simulated = hypothesis.trial.fault.has_value();
    const bool is_fault =
        is_simulated && subject.known == nullptr && result.of >= kFewest && has_pattern &&
        (has_bits ? share_of(baseline.rms_error) > kSomething && gains : share_of(baseline.rms_error) >= kAllError);
    // One number fitted to few says nothing.
    constexpr std::uint64_t kFewestAtAll = 3;
    const bool is_small = result.of < kFewestAtAll && !are_telling(subject, hypothesis, result, declared.port);
    if (result.failing.empty() && (is_small || (hypothesis.is_fitted && result.of < kFewest))) {
      result.failing = fmt::format("{} too few to tell",
                                   result.of == 1 ? "1 element is" : fmt::format("{} elements are", result.of));
    }
    if (result.failing.empty() && baseline.passes) {
      result.failing = "the simulated device leaves no more without the fault";
    }
    result.all_gates = result.failing.empty();
    result.passes = result.all_gates || are_the_bits || is_fault;
    result.failing = result.passes ? std::string() : result.failing;
    result.applied = result.passes ? std::make_shared<const Applied>(subject, hypothesis.trial) : nullptr;
    // Where hardly anything is explained, the hypothesis allows for errors of that size, whatever they are from. Of a
    // simulated device, numbers are rounded to the output's format already: then bits alone tell.
    constexpr double kLittle = 0.5;
    const bool is_rounded = is_simulated && output->statistics.flip_rate.has_value();
    const bool mends = declared.is_drawn && hypothesis.family == kPlaces;  // no other elements fail
    const bool is_doubted = !output->doubt.empty();                        // too few elements could show it
    const bool predicts = !is_doubted && (gains || mends || (!is_rounded && result.share >= kLittle));
    result.is_consistent_only = !are_the_bits && !is_shown && !is_fault && !predicts && declared.has_numbers;
    result.cosine = output->statistics.arithmetic.cosine;
    look_at_others(subject, hypothesis.trial, run, declared, result);
    refute(hypothesis, result);
  } catch (const core::Cancelled&) {
    throw;
  } catch (const core::Error& error) {  // one hypothesis less, and not the diagnosis
    result.failing = fmt::format("could not be tried: {}", error.what());
  }
  return result;
}

bool is_open(const Diagnosis& diagnosis) {
  return std::ranges::all_of(diagnosis.passing, is_weak);
}

bool is_better_proof(const Explanation& one, const Explanation& other) {
  const auto rank = [](const Explanation& e) { return std::tuple(!is_weak(e), e.equal_bits, -e.rms_left); };
  return rank(one) > rank(other);
}

void keep_best(bool is_narrow, Diagnosis& diagnosis) {
  // Where elements are wrong is no cause if there is one.
  const auto is_place = [](const Explanation& one) { return one.family == kPlaces; };
  const auto is_cause = [&](const Explanation& one) { return !is_place(one) && one.contradicts.empty(); };
  if (std::ranges::any_of(diagnosis.passing, is_cause)) {
    std::erase_if(diagnosis.passing, is_place);
  }
  std::ranges::stable_partition(diagnosis.passing, [](const Explanation& one) { return !one.is_fitted; });
  if (!is_open(diagnosis)) {
    exclude(diagnosis, is_weak, [](const Explanation& one) {
      return one.contradicts.empty() ? std::string("it allows for these errors, and the cause predicts them")
                                     : one.contradicts + " under it, which is right as declared";
    });
  }
  if (std::ranges::any_of(diagnosis.passing, [&](const Explanation& one) { return is_cause(one) && !one.is_pair; })) {
    exclude(diagnosis, &Explanation::is_pair, [](const Explanation&) { return std::string("a single cause does"); });
  }
  if (!diagnosis.passing.empty()) {
    const std::uint64_t fewest =
        std::ranges::min_element(diagnosis.passing, {}, &Explanation::others_wrong)->others_wrong;
    exclude(
        diagnosis, [fewest](const Explanation& one) { return one.others_wrong > fewest; },
        [](const Explanation&) { return std::string("it explains fewer of the outputs that are wrong"); });
  }
  std::ranges::stable_partition(diagnosis.passing, [](const Explanation& one) { return one.family == kOneNumber; });
  if (diagnosis.passing.size() < 2) {
    return;
  }
  if (!is_narrow) {  // of rounded numbers, errors are those of rounding
    constexpr double kMuchMore = 8;
    const double least = std::ranges::min_element(diagnosis.passing, {}, &Explanation::rms_left)->rms_left;
    exclude(
        diagnosis, [least](const Explanation& one) { return one.rms_left > kMuchMore * least; },
        [least](const Explanation& one) {
          return least > 0 ? fmt::format("it leaves {:.2g} times the error of the cause", one.rms_left / least)
                           : std::string("it leaves an error, and the cause none");
        });
    return;
  }
  const auto missed = [](const Explanation& one) { return one.of - one.equal_bits; };
  const std::uint64_t fewest = missed(*std::ranges::min_element(diagnosis.passing, {}, missed));
  constexpr std::uint64_t kChance = 16;
  exclude(
      diagnosis, [&](const Explanation& one) { return missed(one) > 2 * fewest + kChance; },
      [&](const Explanation& one) {
        return fmt::format("{} elements have other bits, and {} of the cause", missed(one), fewest);
      });
}

}  // namespace numcheck::diagnose
