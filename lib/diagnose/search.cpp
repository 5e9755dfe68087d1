#include "diagnose/search.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "op/gemm.hpp"
#include "verdict/evaluate.hpp"

namespace numcheck::diagnose {
namespace {

const verdict::OutputResult* output_named(const verdict::RunResult& run, std::string_view port) {
  const auto found = std::ranges::find(run.outputs, port, &verdict::OutputResult::port);
  return found == run.outputs.end() ? nullptr : &*found;
}

const metric::ErrorNorms& error_of(const verdict::OutputResult& output) {
  return output.judged.has_value() ? *output.judged : output.statistics.arithmetic;
}

/// Numbers of the delivered output where they are expected, in the order of the reference's values.
core::Buffer<double> decode_delivered(const Subject& subject, std::string_view port_name, const op::Sample& sample) {
  core::Buffer<double> all = delivered_numbers(subject, port_name);
  if (sample.all()) {
    return all;
  }
  core::Buffer<double> some(sample.indices.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    some[i] = all[static_cast<std::size_t>(sample.indices[i])];
  }
  return some;
}

Explanation explain(const Subject& subject, const Hypothesis& hypothesis, std::string_view port, double rms_before,
                    double flops) {
  Explanation result{.name = hypothesis.name,
                     .family = hypothesis.family.empty() ? hypothesis.name : hypothesis.family,
                     .cause = hypothesis.cause,
                     .remedy = hypothesis.remedy};
  try {
    const verdict::RunResult run = judge(subject, hypothesis.trial, flops);
    const verdict::OutputResult* output = output_named(run, port);
    if (output == nullptr) {
      throw core::InternalError("this trial has no output " + std::string(port));
    }
    result.failing = verdict::failure_of(*output);
    result.passes = result.failing.empty();
    result.rms_left = error_of(*output).rms;
    result.share = rms_before > 0 ? 1 - std::pow(result.rms_left / rms_before, 2) : 0;
    result.of = output->statistics.elements;
    result.equal_bits = result.of - output->statistics.exact_mismatch;
  } catch (const core::Error& error) {  // one hypothesis less, and not the diagnosis
    result.failing = fmt::format("could not be tried: {}", error.what());
  }
  return result;
}

/// Tries the hypotheses of the catalogue's rows, until one of a family explains the output.
void try_rows(const Evidence& evidence, bool last_resort, double flops, Diagnosis& diagnosis) {
  const auto is_explained = [&diagnosis](const Hypothesis& hypothesis) {
    return !hypothesis.family.empty() &&
           std::ranges::find(diagnosis.passing, hypothesis.family, &Explanation::family) != diagnosis.passing.end();
  };
  for (const CatalogueRow& row : catalogue()) {
    if (row.is_last_resort != last_resort) {
      continue;
    }
    for (const Hypothesis& hypothesis : row.make(evidence)) {
      if (!is_explained(hypothesis)) {
        Explanation explanation = explain(evidence.subject, hypothesis, diagnosis.port, diagnosis.rms_error, flops);
        (explanation.passes ? diagnosis.passing : diagnosis.excluded).push_back(std::move(explanation));
      }
    }
  }
}

/// Of 16- and 8-bit outputs: those whose bits fit much worse than the best one's are excluded by that.
void keep_best(bool is_narrow, Diagnosis& diagnosis) {
  // Where elements are wrong is no cause if there is one.
  const auto is_place = [](const Explanation& one) { return one.family == kPlaces; };
  if (!std::ranges::all_of(diagnosis.passing, is_place)) {
    std::erase_if(diagnosis.passing, is_place);
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

/// The pattern that outputs are filled with before a run says it without any trial.
void add_unwritten(const verdict::OutputResult& output, Diagnosis& diagnosis) {
  if (output.statistics.poison == 0) {
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
       .is_finding = true});
}

/// What the op itself says of the failure: its own diagnoses, which name a cause and measure what it explains.
void add_findings(const verdict::OutputResult& output, Diagnosis& diagnosis) {
  constexpr double kProven = 0.9;
  for (const op::Finding& finding : output.findings) {
    const bool is_share =
        !finding.cause.empty() || finding.name == op::kProductRounded || finding.name == op::kSumRounded;
    if (is_share && finding.measured >= kProven) {
      diagnosis.passing.push_back({.name = finding.name,
                                   .family = finding.name,
                                   .cause = finding.cause.empty() ? finding.name : finding.cause,
                                   .remedy = finding.text,
                                   .passes = true,
                                   .share = finding.measured,
                                   .is_finding = true});
    }
  }
}

}  // namespace

std::span<const CatalogueRow> catalogue() {
  static const std::vector<CatalogueRow> rows = [] {
    std::vector<CatalogueRow> all;
    for (const std::span<const CatalogueRow> part :
         {operand_rows(), formula_rows(), output_rows(), sum_rows(), norm_rows(), structure_rows()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return rows;
}

Diagnosis diagnose(const Subject& subject, double declared_flops, double trial_flops) {
  Diagnosis diagnosis;
  diagnosis.declared = judge(subject, as_declared(subject), declared_flops);
  const auto failed = std::ranges::find_if(diagnosis.declared.outputs, [](const verdict::OutputResult& output) {
    return !verdict::failure_of(output).empty();
  });
  if (failed == diagnosis.declared.outputs.end()) {
    const bool proven =
        diagnosis.declared.status == verdict::Status::pass || diagnosis.declared.status == verdict::Status::warn;
    diagnosis.kind = proven ? Diagnosis::Kind::correct : Diagnosis::Kind::undecided;
    return diagnosis;
  }
  diagnosis.kind = Diagnosis::Kind::unexplained;
  diagnosis.port = failed->port;
  WrongMarks marks;
  const verdict::RunResult on_sample = judge(subject, as_declared(subject), trial_flops, &marks);
  const verdict::OutputResult* declared = output_named(on_sample, diagnosis.port);
  const Expected expected = expect(subject, as_declared(subject), trial_flops);
  const auto values = std::ranges::find(expected.values.outputs, diagnosis.port, &op::OutputValues::port);
  if (declared == nullptr || values == expected.values.outputs.end()) {  // a maximum, of which a sample says nothing
    return diagnosis;
  }
  diagnosis.rms_error = error_of(*declared).rms;
  diagnosis.equal_bits = declared->statistics.elements - declared->statistics.exact_mismatch;
  const core::Buffer<double> delivered = decode_delivered(subject, diagnosis.port, expected.sample);
  const Evidence evidence{subject, diagnosis.port, *values, delivered.span(), marks[diagnosis.port], expected.sample};
  add_unwritten(*failed, diagnosis);
  if (diagnosis.passing.empty()) {
    try_rows(evidence, false, trial_flops, diagnosis);
  }
  if (diagnosis.passing.empty()) {
    add_findings(*failed, diagnosis);
  }
  if (diagnosis.passing.empty()) {
    try_rows(evidence, true, trial_flops, diagnosis);
  }
  std::ranges::stable_sort(diagnosis.excluded, std::greater{}, &Explanation::share);
  keep_best(declared->statistics.flip_rate.has_value(), diagnosis);
  if (!diagnosis.passing.empty()) {
    diagnosis.kind = Diagnosis::Kind::explained;
  }
  return diagnosis;
}

}  // namespace numcheck::diagnose
