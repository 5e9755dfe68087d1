#include "diagnose/search.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/cancel.hpp"
#include "core/error.hpp"
#include "diagnose/crop.hpp"
#include "diagnose/explanation.hpp"
#include "diagnose/glance.hpp"
#include "diagnose/one_pass.hpp"
#include "diagnose/told.hpp"
#include "op/gemm.hpp"
#include "verdict/evaluate.hpp"

namespace numcheck::diagnose {
namespace {

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

/// A hypothesis that does not explain all, but may be one of two causes.
struct Part {
  Hypothesis hypothesis;
  double share = 0;  ///< of the squared error that it explains, or of what no factor explains
};

using Clock = std::chrono::steady_clock;

/// Whether something may explain much more of its bits than what explains it.
bool is_open_to_bits(const Diagnosis& diagnosis) {
  constexpr std::uint64_t kMany = 20;  // of all elements have other bits
  return diagnosis.is_narrow && std::ranges::all_of(diagnosis.passing, [](const Explanation& one) {
           return one.of - one.equal_bits > one.of / kMany;
         });
}

/// Which rows of the catalogue a subject is for: of a part of an output, those that do not need all of it.
enum class Rows { all, needing_all, needing_part };

/// Tries what the catalogue has, and remembers what explains most.
class Search {
 public:
  Search(const Subject& subject, Diagnosis& diagnosis, double flops)
      : subject_(subject), diagnosis_(diagnosis), flops_(flops) {}

  /// Tries the hypotheses of a stage's rows, until one of a family explains the output.
  void try_rows(const Evidence& evidence, Stage stage, Rows rows = Rows::all) {
    const Glance glance(evidence);
    simulated_.reset();
    for (const CatalogueRow& row : catalogue()) {
      const bool is_left_out = rows != Rows::all && row.needs_all != (rows == Rows::needing_all);
      if (row.stage != stage || is_left_out) {
        continue;
      }
      for (Hypothesis& hypothesis : made_by(row, evidence)) {
        if (Clock::now() > end_) {
          diagnosis_.pairs_left = true;
          return;
        }
        if (!is_explained(hypothesis)) {
          add(evidence.subject, glance, std::move(hypothesis));
        }
      }
    }
  }

  /// The first cause is one of those that explained most, the second one any. Ends after that time.
  void try_pairs(double seconds) {
    if (seconds <= 0) {
      return;
    }
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    const std::vector<Part> first = std::exchange(parts_, {});
    for (const Part& part : first) {
      if (Clock::now() > end_) {
        diagnosis_.pairs_left = true;
        return;
      }
      const Subject known = with_known(subject_, part.hypothesis.trial);
      first_ = &part.hypothesis;
      with_evidence(known, [&](const Evidence& evidence) {
        for (const Stage stage : {Stage::first, Stage::simulated, Stage::last_resort}) {
          if (is_open(diagnosis_)) {
            try_rows(evidence, stage);
          }
        }
      });
      first_ = nullptr;
      if (!is_open(diagnosis_)) {
        return;
      }
    }
  }

  /// Calls body(evidence) with what is expected of the subject, if anything is expected of that output.
  template <class Body>
  void with_evidence(const Subject& subject, const Body& body) {
    FactsByPort facts;
    static_cast<void>(judge(subject, as_declared(subject), flops_, Depth::gates, &facts));
    const Expected expected = expect(subject, as_declared(subject), flops_);
    const auto values = std::ranges::find(expected.values.outputs, diagnosis_.port, &op::OutputValues::port);
    if (values == expected.values.outputs.end()) {  // a maximum, of which a sample says nothing
      return;
    }
    const core::Buffer<double> delivered = decode_delivered(subject, diagnosis_.port, expected.sample);
    is_exact_ = values->bit_exact || values->unpredictable;
    body(Evidence{subject, diagnosis_.port, *values, delivered.span(), facts[diagnosis_.port].is_wrong,
                  expected.sample});
  }

 private:
  /// A row that fails is one less, and says so: with a known cause, its references may not exist.
  std::vector<Hypothesis> made_by(const CatalogueRow& row, const Evidence& evidence) {
    try {
      return row.make(evidence);
    } catch (const core::Cancelled&) {
      throw;
    } catch (const core::Error& error) {
      diagnosis_.excluded.push_back({.name = std::string(row.name),
                                     .family = std::string(row.name),
                                     .cause = std::string(row.doc),
                                     .remedy = {},
                                     .failing = fmt::format("could not be tried: {}", error.what())});
      return {};
    }
  }

  [[nodiscard]] bool is_explained(const Hypothesis& hypothesis) const {
    return !hypothesis.family.empty() && std::ranges::any_of(diagnosis_.passing, [&](const Explanation& one) {
      return one.family == hypothesis.family && one.contradicts.empty();
    });
  }

  void add(const Subject& subject, const Glance& glance, Hypothesis hypothesis) {
    hypothesis.is_measured |= first_ != nullptr;  // of so many pairs, one has a few bits by chance
    if (first_ != nullptr && family_of(hypothesis) != family_of(*first_)) {  // otherwise it takes the first one's place
      hypothesis.name = fmt::format("{} + {}", first_->name, hypothesis.name);
      hypothesis.cause = fmt::format("two causes: {}; and {}", first_->cause, hypothesis.cause);
      hypothesis.remedy = fmt::format("{} {}", first_->remedy, hypothesis.remedy);
    }
    constexpr std::uint64_t kMuch = 100;  // of all elements
    const Declared declared{diagnosis_.port,
                            diagnosis_.rms_error,
                            diagnosis_.unjudged + diagnosis_.of / kMuch,
                            is_exact_,
                            diagnosis_.equal_bits,
                            diagnosis_.rms_error > 0,
                            &diagnosis_.declared,
                            hypothesis.trial.fault.has_value() ? without_fault(subject) : nullptr};
    std::optional<Explanation> seen = glance.dismissed(hypothesis, declared, flops_);
    Explanation explanation = seen.has_value() ? *std::move(seen) : explain(subject, hypothesis, declared, flops_);
    if (first_ == nullptr && !explanation.passes) {
      remember(std::move(hypothesis), std::max(explanation.share, share_if_scaled(explanation)));
    }
    if (explanation.passes) {
      diagnosis_.passing.push_back(std::move(explanation));
    } else if (first_ == nullptr) {
      diagnosis_.excluded.push_back(std::move(explanation));
    } else {
      ++diagnosis_.pairs_tried;
    }
  }

  /// What the simulated device explains without a fault.
  const Explanation* without_fault(const Subject& subject) {
    if (!simulated_.has_value()) {
      Hypothesis none{.name = "no fault", .family = {}, .cause = {}, .remedy = {}, .trial = as_declared(subject)};
      none.trial.fault = "";
      simulated_ = explain(subject, none,
                           {diagnosis_.port, diagnosis_.rms_error, diagnosis_.of, is_exact_, diagnosis_.equal_bits,
                            diagnosis_.rms_error > 0, nullptr},
                           flops_);
    }
    return &*simulated_;
  }

  /// The share of what no factor explains: of d and y, 1 - cos^2 of their angle is left with the best one.
  [[nodiscard]] double share_if_scaled(const Explanation& explanation) const {
    const double left = 1 - explanation.cosine * explanation.cosine;
    const double declared = 1 - diagnosis_.cosine * diagnosis_.cosine;
    return declared > 0 ? 1 - left / declared : 0;
  }

  /// Keeps the few that explain most. Of a family some: the number that fits best makes up for another cause as well, so that
  /// a usual one comes before it.
  void remember(Hypothesis hypothesis, double share) {
    constexpr std::size_t kMost = 16, kMostOfFamily = 6;
    constexpr double kAlike = 1e-3;  // then the one that was tried first comes first
    constexpr double kSomething = 0.02;
    if (!(share > kSomething)) {
      return;
    }
    const std::string& family = family_of(hypothesis);
    const auto is_same = [&](const Part& part) { return family_of(part.hypothesis) == family; };
    const auto best = std::ranges::find_if(parts_, is_same);
    constexpr double kAsGood = 0.5;
    if (hypothesis.is_usual && best != parts_.end() && share > kAsGood * best->share) {
      share = std::max(share, best->share + 2 * kAlike);
    }
    if (std::cmp_greater_equal(std::ranges::count_if(parts_, is_same), kMostOfFamily)) {
      const auto least = std::ranges::find_if(parts_.rbegin(), parts_.rend(), is_same);
      if (least->share >= share) {
        return;
      }
      parts_.erase(std::next(least).base());
    }
    const auto place = std::ranges::find_if(parts_, [share](const Part& part) { return part.share < share - kAlike; });
    parts_.insert(place, {std::move(hypothesis), share});
    if (parts_.size() > kMost) {
      parts_.pop_back();
    }
  }

  const Subject& subject_;
  Diagnosis& diagnosis_;
  double flops_;
  std::optional<Explanation> simulated_;  ///< without_fault, of the subject whose rows are tried
  bool is_exact_ = false;                 ///< the output: moved, cast or drawn
  Clock::time_point end_ = Clock::time_point::max();
  const Hypothesis* first_ = nullptr;  ///< the first of two causes
  std::vector<Part> parts_;            ///< that explain most first
};

/// How far a search goes.
struct Extent {
  const Effort& effort;
  double flops = 0;  ///< of a reference
  Rows rows = Rows::all;
};

/// From what is simple to what is not, until something explains the output.
void search(const Subject& subject, const verdict::OutputResult& failed, const Extent& extent, Diagnosis& diagnosis) {
  const Rows rows = extent.rows;
  Search search(subject, diagnosis, extent.flops);
  search.with_evidence(subject, [&](const Evidence& evidence) {
    constexpr double kAll = 0.9999, kMost = 0.9;
    // Of products, ranges of k explain whatever is proportional to the result.
    const bool is_product = subject.c.op->name == "gemm";
    if (is_open(diagnosis)) {
      add_findings(failed, is_product ? kMost : kAll, is_product, diagnosis);
      search.try_rows(evidence, Stage::first, rows);
    }
    // What the op itself finds is not judged, and may be one of several names.
    const bool only_found = std::ranges::all_of(diagnosis.passing, &Explanation::is_finding);
    if (is_open(diagnosis) || is_open_to_bits(diagnosis) || only_found) {
      search.try_rows(evidence, Stage::simulated, rows);
    }
    if (is_open(diagnosis)) {
      search.try_rows(evidence, Stage::last_resort, rows);
    }
    if (is_open(diagnosis) && rows != Rows::needing_all) {
      search.try_pairs(extent.effort.pairs_s);
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
