#include "diagnose/search.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "diagnose/crop.hpp"
#include "diagnose/explanation.hpp"
#include "diagnose/one_pass.hpp"
#include "diagnose/told.hpp"
#include "diagnose/trials.hpp"
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
void search(const Subject& subject, const verdict::OutputResult& failed, const Extent& extent, Diagnosis& diagnosis) {
  const Rows rows = extent.rows;
  Trials trials(subject, diagnosis, extent.flops);
  trials.with_evidence(subject, [&](const Evidence& evidence) {
    constexpr double kAll = 0.9999, kMost = 0.9;
    // Of products, ranges of k explain whatever is proportional to the result.
    const bool is_product = subject.c.op->name == "gemm";
    if (is_open(diagnosis)) {
      add_findings(failed, is_product ? kMost : kAll, is_product, diagnosis);
      trials.try_rows(evidence, Stage::first, rows);
    }
    // What the op itself finds is not judged, and may be one of several names.
    const bool only_found = std::ranges::all_of(diagnosis.passing, &Explanation::is_finding);
    if (is_open(diagnosis) || is_open_to_bits(diagnosis) || only_found) {
      trials.try_rows(evidence, Stage::simulated, rows);
    }
    if (is_open(diagnosis)) {
      trials.try_rows(evidence, Stage::last_resort, rows);
    }
    if (is_open(diagnosis) && rows != Rows::needing_all) {
      trials.try_pairs(extent.effort.pairs_s);
    }
    if (is_open(diagnosis)) {
      add_findings(failed, kMost, false, diagnosis);
    }
  });
}

/// What the subject's output has as declared, before any trial. False if it has no such output.
bool measure(const Subject& subject, double flops, Diagnosis& diagnosis) {
  const verdict::RunResult run = judge(subject, as_declared(subject), flops, Depth::gates);
  const verdict::OutputResult* output = output_named(run, diagnosis.port);
  if (output == nullptr) {
    return false;
  }
  diagnosis.rms_error = error_of(*output).rms;
  diagnosis.cosine = output->statistics.arithmetic.cosine;
  diagnosis.equal_bits = output->statistics.elements - output->statistics.exact_mismatch;
  diagnosis.is_narrow = output->statistics.flip_rate.has_value();
  diagnosis.unjudged = unjudged(*output);
  diagnosis.of = output->statistics.elements;
  return true;
}

/// Of a large product, most hypotheses are tried on a part. Moved rows and wrong tiles show in all of it, which takes longer: if
/// most elements are wrong, only after the part has not explained them.
void search_large(const Subject& subject, const Subject& part, const verdict::OutputResult& failed,
                  const Effort& effort, Diagnosis& diagnosis) {
  const Diagnosis before = diagnosis;
  const std::vector<std::uint8_t>& is_wrong = diagnosis.elements[diagnosis.port].is_wrong;
  const auto wrong = std::ranges::count(is_wrong, std::uint8_t{1});
  if (std::cmp_greater(2 * wrong, is_wrong.size())) {
    Effort singles = effort;
    singles.pairs_s = 0;
    search(part, failed, {singles, effort.declared_flops, Rows::needing_part}, diagnosis);
    if (!is_open(diagnosis)) {
      return;
    }
    diagnosis = before;
  }
  Diagnosis places = before;
  if (measure(subject, effort.declared_flops, places)) {
    search(subject, failed, {effort, effort.declared_flops, Rows::needing_all}, places);
  }
  if (is_open(places)) {
    search(part, failed, {effort, effort.declared_flops, Rows::needing_part}, diagnosis);
  } else {
    diagnosis = std::move(places);
  }
}

/// All of the subject, or a part of it first if it is large.
void search_all(const Subject& subject, const verdict::OutputResult& failed, const Effort& effort,
                Diagnosis& diagnosis) {
  const plan::Case& c = subject.c;
  const bool is_large = c.op->flops != nullptr && c.op->flops(c.params) > effort.trial_flops;
  const std::optional<Subject> part =
      is_large ? cropped(subject, diagnosis.elements[diagnosis.port].is_wrong) : std::nullopt;
  if (part.has_value() && measure(*part, effort.declared_flops, diagnosis)) {
    search_large(subject, *part, failed, effort, diagnosis);
  } else if (measure(subject, effort.trial_flops, diagnosis)) {
    search(subject, failed, {effort, effort.trial_flops, Rows::all}, diagnosis);
  }
}

}  // namespace

Diagnosis diagnose(const Subject& subject, const Effort& effort) {
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
    const bool proven =
        diagnosis.declared.status == verdict::Status::pass || diagnosis.declared.status == verdict::Status::warn;
    diagnosis.kind = proven ? Diagnosis::Kind::correct : Diagnosis::Kind::undecided;
    return diagnosis;
  }
  diagnosis.kind = Diagnosis::Kind::unexplained;
  diagnosis.port = failed->port;
  add_unwritten(subject, *failed, diagnosis);
  add_amax(subject, *failed, diagnosis);
  const std::optional<Subject> pass = one_pass(subject, failed->port);
  search_all(pass.value_or(subject), *failed, effort, diagnosis);
  std::ranges::stable_sort(diagnosis.excluded, std::greater{}, &Explanation::share);
  keep_best(diagnosis.is_narrow, diagnosis);
  if (!diagnosis.passing.empty()) {
    diagnosis.kind = Diagnosis::Kind::explained;
  }
  return diagnosis;
}

}  // namespace numcheck::diagnose
