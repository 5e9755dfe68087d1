#include "diagnose/search.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "diagnose/crop.hpp"
#include "diagnose/crop_attention.hpp"
#include "diagnose/explanation.hpp"
#include "diagnose/one_pass.hpp"
#include "diagnose/told.hpp"
#include "diagnose/trials.hpp"
#include "tolerance/gate_table.hpp"
#include "verdict/evaluate.hpp"

namespace numcheck::diagnose {
namespace {

/// Whether something may explain much more of its bits than what explains it.
bool is_open_to_bits(const Diagnosis& diagnosis) {
  constexpr std::uint64_t kMany = 20;  // of all elements have other bits
  return diagnosis.is_narrow && std::ranges::all_of(diagnosis.passing, [](const Explanation& one) {
           return one.of - one.equal_bits > one.of / kMany;
         });
}

/// How far a search goes.
struct Extent {
  const Effort& effort;
  double flops = 0;  ///< of a reference
  Rows rows = Rows::all;
};

/// From what is simple to what is not, until something explains the output.
class Search {
 public:
  /// `is_declared`: the subject is the one that was judged as declared, all of it. What is known of its elements is not
  /// computed again.
  Search(const Subject& subject, const verdict::OutputResult& failed, Extent extent, Diagnosis& diagnosis,
         bool is_declared)
      : subject_(subject),
        failed_(failed),
        extent_(extent),
        diagnosis_(diagnosis),
        trials_(subject, diagnosis, extent.flops, is_declared ? &diagnosis.elements : nullptr) {
    trials_.end_singles_after(extent.effort.singles_s);
  }

  void singles() {
    const Rows rows = extent_.rows;
    trials_.with_evidence(subject_, [&](const Evidence& evidence) {
      // Of products, ranges of k explain whatever is proportional to the result.
      const bool is_product = subject_.c.op->name == "gemm";
      if (is_open(diagnosis_)) {
        add_findings(failed_, is_product ? kMost : kAll, is_product, diagnosis_);
        trials_.try_rows(evidence, Stage::first, rows);
      }
      // What the op itself finds is not judged, and may be one of several names.
      const bool only_found = std::ranges::all_of(diagnosis_.passing, &Explanation::is_finding);
      // Nor is a number that nobody would have typed the only name for what a simulated fault makes of these inputs.
      const bool only_fitted = std::ranges::all_of(diagnosis_.passing, &Explanation::is_fitted);
      if (is_open(diagnosis_) || is_open_to_bits(diagnosis_) || only_found || only_fitted) {
        trials_.try_rows(evidence, Stage::simulated, rows);
      }
      if (is_open(diagnosis_)) {
        trials_.try_rows(evidence, Stage::last_resort, rows);
      }
    });
  }

  void pairs(double seconds) {
    if (is_open(diagnosis_)) {
      trials_.try_pairs(seconds);
    }
  }

  /// What the op finds, if nothing else explains it.
  void findings() {
    if (is_open(diagnosis_)) {
      add_findings(failed_, kMost, false, diagnosis_);
    }
  }

 private:
  static constexpr double kAll = 0.9999, kMost = 0.9;

  const Subject& subject_;
  const verdict::OutputResult& failed_;
  Extent extent_;
  Diagnosis& diagnosis_;
  Trials trials_;
};

/// Root mean square of the finite numbers of the output; of codes, if it has a scale, as errors are.
double rms_of_output(const Subject& subject, std::string_view port) {
  const core::Buffer<double> numbers = delivered_numbers(subject, port);
  double square = 0, count = 0;
  for (const double d : numbers.span()) {
    square += std::isfinite(d) ? d * d : 0;
    count += std::isfinite(d) ? 1 : 0;
  }
  return count > 0 ? std::sqrt(square / count) * output_scale(subject, port) : 0;
}

/// What the output has as declared, before any trial. False if the run has no such output.
bool take_measures(const Subject& subject, const verdict::RunResult& run, Diagnosis& diagnosis) {
  const verdict::OutputResult* output = output_named(run, diagnosis.port);
  if (output == nullptr) {
    return false;
  }
  diagnosis.rms_error = error_of(*output).rms;
  diagnosis.rms_output = rms_of_output(subject, diagnosis.port);
  diagnosis.cosine = output->statistics.arithmetic.cosine;
  diagnosis.equal_bits = output->statistics.elements - output->statistics.exact_mismatch;
  diagnosis.is_narrow = output->statistics.flip_rate.has_value();
  diagnosis.unjudged = unjudged(*output);
  diagnosis.of = output->statistics.elements;
  return true;
}

bool measure(const Subject& subject, double flops, Diagnosis& diagnosis) {
  return take_measures(subject, judge(subject, as_declared(subject), flops, Depth::gates), diagnosis);
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Whether a single cause leaves hardly anything of the error: a second one is likelier than wrong places.
bool has_a_main_cause(const Diagnosis& diagnosis) {
  constexpr double kMost = 0.9;
  return std::ranges::any_of(diagnosis.excluded, [](const Explanation& one) { return one.share > kMost; });
}

/// Of a large subject, most hypotheses are tried on a part. Moved rows and wrong tiles show in all of it, which takes longer: if
/// most elements are wrong, only after the part has not explained them. Pairs have the time that is left, and a second at
/// least.
void search_large(const Subject& subject, const Subject& part, const verdict::OutputResult& failed,
                  const Effort& effort, Clock::time_point start, Diagnosis& diagnosis) {
  Diagnosis places = diagnosis;
  const std::vector<std::uint8_t>& is_wrong = places.elements[diagnosis.port].is_wrong;
  const bool most_are_wrong = std::cmp_greater(2 * std::ranges::count(is_wrong, std::uint8_t{1}), is_wrong.size());
  const auto time_for_pairs = [&] {
    constexpr double kLeast = 1, kToConclude = 1.3;  // what explains the part is judged on all of it
    return effort.pairs_s == 0 ? 0
                               : std::clamp(effort.pairs_s - kToConclude - seconds_since(start),
                                            std::min(kLeast, effort.pairs_s), effort.pairs_s);
  };
  Search in_part(part, failed, {effort, effort.declared_flops, Rows::needing_part}, diagnosis, false);
  if (most_are_wrong) {
    in_part.singles();
    in_part.findings();
    if (is_open(diagnosis) && has_a_main_cause(diagnosis)) {
      in_part.pairs(time_for_pairs());
    }
    if (!is_open(diagnosis)) {
      return;
    }
  }
  if (take_measures(subject, diagnosis.declared, places)) {
    Search in_all(subject, failed, {effort, effort.declared_flops, Rows::needing_all}, places, true);
    in_all.singles();
    in_all.findings();
    if (!is_open(places)) {
      diagnosis = std::move(places);
      return;
    }
  }
  if (!most_are_wrong) {
    in_part.singles();
  }
  in_part.pairs(time_for_pairs());
  in_part.findings();
}

std::optional<Subject> part_of(const Subject& subject, const Diagnosis& diagnosis) {
  const auto facts = diagnosis.elements.find(diagnosis.port);
  if (facts == diagnosis.elements.end()) {
    return std::nullopt;
  }
  std::optional<Subject> part = cropped(subject, facts->second.is_wrong);
  return part.has_value() ? std::move(part) : cropped_attention(subject, diagnosis.port, facts->second.is_wrong);
}

/// All of the subject, or a part of it first if it is large. `is_declared`: it is the one that was judged, and not one of its
/// passes.
void search_all(const Subject& subject, const verdict::OutputResult& failed, const Effort& effort,
                Clock::time_point start, bool is_declared, Diagnosis& diagnosis) {
  const plan::Case& c = subject.c;
  const bool is_large = c.op->flops != nullptr && c.op->flops(c.params) > effort.trial_flops;
  const std::optional<Subject> part = is_large && is_declared ? part_of(subject, diagnosis) : std::nullopt;
  if (part.has_value() && measure(*part, effort.declared_flops, diagnosis)) {
    search_large(subject, *part, failed, effort, start, diagnosis);
    return;
  }
  const bool is_judged = is_declared && !is_large;
  if (is_judged ? take_measures(subject, diagnosis.declared, diagnosis)
                : measure(subject, effort.trial_flops, diagnosis)) {
    Search search(subject, failed, {effort, effort.trial_flops, Rows::all}, diagnosis, is_judged);
    search.singles();
    search.pairs(effort.pairs_s);
    search.findings();
  }
}

/// Whether what explains the output says at most where it is wrong, and not why.
bool has_no_cause(const Diagnosis& diagnosis) {
  return is_open(diagnosis) || std::ranges::all_of(diagnosis.passing, [](const Explanation& explanation) {
           return explanation.family == kPlaces;
         });
}

/// What explains the only head of attention that is wrong, as attention of its own. It has the time of single causes once more.
void search_head(const verdict::OutputResult& failed, const Subject& subject, const Effort& effort,
                 Diagnosis& diagnosis) {
  const auto facts = diagnosis.elements.find(diagnosis.port);
  const std::optional<WrongHead> head = facts == diagnosis.elements.end()
                                            ? std::nullopt
                                            : only_wrong_head(subject, diagnosis.port, facts->second.is_wrong);
  if (!head.has_value()) {
    return;
  }
  Diagnosis inner = diagnosis;
  inner.passing.clear();
  if (!measure(head->subject, effort.trial_flops, inner)) {
    return;
  }
  Search(head->subject, failed, {effort, effort.trial_flops, Rows::all}, inner, false).singles();
  if (has_no_cause(inner)) {
    return;
  }
  diagnosis.passing.clear();
  for (Explanation& explanation : inner.passing) {
    explanation.cause = fmt::format("in {} (from 0), and there only, {}", head->place, explanation.cause);
    diagnosis.passing.push_back(std::move(explanation));
  }
}

/// Whether that gate fails, and no other.
bool fails_only(const verdict::OutputResult& output, tolerance::Gate gate) {
  const auto failing = [](const tolerance::Criterion& criterion) { return !criterion.ok; };
  return std::ranges::count_if(output.criteria, failing) == 1 &&
         std::ranges::find_if(output.criteria, failing)->name == tolerance::gate_name(gate);
}

bool is_proven(const verdict::RunResult& run) {
  return run.status == verdict::Status::pass || run.status == verdict::Status::warn;
}

/// Judges once more what proves too little by itself: what is known of the run makes some bounds narrower. What passes then is as
/// the run was.
void look_again(const Subject& subject, double flops, Diagnosis& diagnosis) {
  const Ran& ran = subject.ran;
  const bool is_converted = ran.observed.has_value() && ran.conversion.has_value();
  if (!is_converted && !ran.drawn.has_value()) {
    return;
  }
  Subject known = subject;
  known.c.inputs = ran.drawn.value_or(subject.c.inputs);
  Trial trial = as_declared(known);
  if (is_converted) {
    trial.ran = ran.observed;
    trial.conversion = ran.conversion;
    trial.is_unconverted = true;
  }
  FactsByPort elements;
  verdict::RunResult again = judge(known, trial, flops, Depth::all, &elements);
  if (is_proven(again)) {
    diagnosis.declared = std::move(again);
    diagnosis.elements = std::move(elements);
  }
}

}  // namespace

double real_share(const Diagnosis& diagnosis, const Explanation& explanation) {
  const double least = std::min(diagnosis.rms_error, diagnosis.rms_output);
  return explanation.share > 0 && least > 0 ? 1 - std::pow(explanation.rms_left / least, 2) : explanation.share;
}

Diagnosis diagnose(const Subject& subject, const Effort& effort) {
  const Clock::time_point start = Clock::now();
  Diagnosis diagnosis;
  diagnosis.declared = judge(subject, as_declared(subject), effort.declared_flops, Depth::all, &diagnosis.elements);
  const auto failed = std::ranges::find_if(diagnosis.declared.outputs, [](const verdict::OutputResult& output) {
    return !verdict::failure_of(output).empty();
  });
  if (failed == diagnosis.declared.outputs.end()) {
    if (add_conduct(subject, diagnosis)) {
      diagnosis.kind = Diagnosis::Kind::misbehaved;
      return diagnosis;
    }
    if (!is_proven(diagnosis.declared)) {
      look_again(subject, effort.declared_flops, diagnosis);
    }
    if (diagnosis.declared.status == verdict::Status::warn && subject.ran.rounding.slices > 1) {
      diagnosis.remedy = kForbidSlices;
    }
    diagnosis.kind = is_proven(diagnosis.declared) ? Diagnosis::Kind::correct : Diagnosis::Kind::undecided;
    return diagnosis;
  }
  diagnosis.kind = Diagnosis::Kind::unexplained;
  diagnosis.port = failed->port;
  diagnosis.is_of_blocks = fails_only(*failed, tolerance::Gate::block_slope);
  add_unwritten(subject, *failed, diagnosis);
  add_amax(subject, *failed, diagnosis);
  if (diagnosis.is_of_blocks) {
    add_block(*failed, diagnosis);
  }
  const std::optional<Subject> pass = one_pass(subject, failed->port);
  search_all(pass.has_value() ? *pass : subject, *failed, effort, start, !pass.has_value(), diagnosis);
  if (has_no_cause(diagnosis) && !pass.has_value()) {
    search_head(*failed, subject, effort, diagnosis);
  }
  std::ranges::stable_sort(diagnosis.excluded, std::greater{}, &Explanation::share);
  keep_best(diagnosis.is_narrow, diagnosis);
  if (!diagnosis.passing.empty()) {
    diagnosis.kind = Diagnosis::Kind::explained;
  }
  return diagnosis;
}

}  // namespace numcheck::diagnose
