#include "diagnose/trials.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/cancel.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"

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

std::chrono::steady_clock::time_point after(double seconds) {
  using Clock = std::chrono::steady_clock;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// How many trials are judged at once, one on each thread: as many as fit into memory, if that keeps at least half of the threads
/// busy; otherwise one, which has all threads.
std::size_t trials_at_once(const Subject& subject) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // of all, with some hundred bytes for each
  std::int64_t elements = 1;
  for (const op::Port& port : subject.c.op->ports(subject.c.params, *subject.c.mode)) {
    elements += port.elements();
  }
  const auto threads = static_cast<std::int64_t>(core::thread_count());
  const std::int64_t fit = std::min(threads, kMostElements / elements);
  return fit > 1 && 2 * fit >= threads ? static_cast<std::size_t>(fit) : 1;
}

bool is_fault(const Hypothesis& hypothesis) {
  return hypothesis.trial.fault.has_value();
}

}  // namespace

void Trials::try_rows(const Evidence& evidence, Stage stage, Rows rows) {
  // A second cause must tell more than the first one, and of many pairs, hardly any does.
  const Glance glance(evidence, first_ != nullptr);
  simulated_.reset();
  const std::size_t at_once = trials_at_once(evidence.subject);
  std::vector<Hypothesis> next;
  std::vector<Explanation> failed;  // come last, however many are judged at once
  const auto finish = [&] {
    add_all(evidence.subject, glance, next);
    std::ranges::move(failed, std::back_inserter(diagnosis_.excluded));
  };
  for (const CatalogueRow& row : catalogue()) {
    const bool is_left_out = rows != Rows::all && row.needs_all != (rows == Rows::needing_all);
    if (row.stage != stage || is_left_out) {
      continue;
    }
    for (Hypothesis& hypothesis : made_by(row, evidence, failed)) {
      if (Clock::now() > end_) {
        diagnosis_.pairs_left = true;
        finish();
        return;
      }
      if (is_explained(hypothesis, first_ == nullptr) || !is_for_now(hypothesis)) {
        continue;
      }
      if (first_ == nullptr && stage != Stage::last_resort && Clock::now() > end_of_singles_) {
        diagnosis_.untried.push_back(hypothesis.name);
        continue;
      }
      next.push_back(std::move(hypothesis));
      if (next.size() == at_once) {
        add_all(evidence.subject, glance, next);
      }
    }
  }
  finish();
}

void Trials::end_singles_after(double seconds) {
  end_of_singles_ = after(seconds);
}

void Trials::try_pairs(double seconds) {
  if (seconds <= 0) {
    return;
  }
  end_ = after(seconds);
  const std::vector<FirstCause> first = firsts_.take();
  constexpr std::size_t kMost = 4;
  for (const FirstCause& part : std::span(first).first(std::min(kMost, first.size()))) {
    likely_.insert(family_of(part.hypothesis));
  }
  // Beside a cause of nearly all the error, the other one may be any, and explains nothing by itself.
  constexpr double kMain = 0.9;
  const std::size_t main = !first.empty() && first.front().share > kMain ? 1 : 0;
  if (!try_firsts(std::span(first).first(main), Second::likely) ||
      !try_firsts(std::span(first).first(main), Second::other)) {
    return;
  }
  // Two causes that explain most by themselves are the likeliest two.
  if (try_firsts(std::span(first).subspan(main), Second::likely)) {
    try_firsts(std::span(first).subspan(main), Second::other);
  }
}

bool Trials::try_firsts(std::span<const FirstCause> firsts, Second second) {
  second_ = second;
  for (const FirstCause& part : firsts) {
    if (Clock::now() > end_) {
      diagnosis_.pairs_left = true;
      return false;
    }
    if (second == Second::likely && !likely_.contains(family_of(part.hypothesis))) {
      continue;
    }
    try_with(part.hypothesis);
    if (!is_open(diagnosis_)) {
      return false;
    }
  }
  return true;
}

void Trials::try_with(const Hypothesis& first) {
  const Subject known = with_known(subject_, first.trial);
  first_ = &first;
  with_evidence(known, [&](const Evidence& evidence) {
    for (const Stage stage : {Stage::first, Stage::simulated, Stage::last_resort}) {
      if (is_open(diagnosis_)) {
        try_rows(evidence, stage);
      }
    }
  });
  first_ = nullptr;
}

bool Trials::is_for_now(const Hypothesis& hypothesis) const {
  return first_ == nullptr || likely_.contains(family_of(hypothesis)) == (second_ == Second::likely);
}

void Trials::with_evidence(const Subject& subject, const std::function<void(const Evidence&)>& body) {
  FactsByPort facts;
  if (facts_ != nullptr && &subject == &subject_) {
    facts = *facts_;
  } else {
    static_cast<void>(judge(subject, as_declared(subject), flops_, Depth::gates, &facts));
  }
  const Expected expected = expect(subject, as_declared(subject), flops_);
  const auto values = std::ranges::find(expected.values->outputs, diagnosis_.port, &op::OutputValues::port);
  if (values == expected.values->outputs.end()) {  // a maximum, of which a sample says nothing
    return;
  }
  const core::Buffer<double> delivered = decode_delivered(subject, diagnosis_.port, expected.sample);
  is_exact_ = values->bit_exact || values->unpredictable;
  is_drawn_ = diagnosis_.is_drawn = values->unpredictable;
  diagnosis_.equal_bits = is_drawn_ ? 0 : diagnosis_.equal_bits;  // which gates would take any number for
  const ElementFacts& elements = facts[diagnosis_.port];
  body(Evidence{subject, diagnosis_.port, *values, delivered.span(), elements.is_wrong, expected.sample,
                elements.possible, diagnosis_.is_of_blocks});
}

std::vector<Hypothesis> Trials::made_by(const CatalogueRow& row, const Evidence& evidence,
                                        std::vector<Explanation>& failed) {
  try {
    return row.make(evidence);
  } catch (const core::Cancelled&) {
    throw;
  } catch (const core::Error& error) {
    failed.push_back({.name = std::string(row.name),
                      .family = std::string(row.name),
                      .cause = std::string(row.doc),
                      .remedy = {},
                      .failing = fmt::format("could not be tried: {}", error.what())});
    return {};
  }
}

bool Trials::is_explained(const Hypothesis& hypothesis, bool by_what_predicts) const {
  return !hypothesis.family.empty() && std::ranges::any_of(diagnosis_.passing, [&](const Explanation& one) {
    return one.family == hypothesis.family && one.contradicts.empty() && !(by_what_predicts && one.is_consistent_only);
  });
}

void Trials::add_all(const Subject& subject, const Glance& glance, std::vector<Hypothesis>& hypotheses) {
  const Explanation* baseline = std::ranges::any_of(hypotheses, is_fault) ? without_fault(subject) : nullptr;
  for (Hypothesis& hypothesis : hypotheses) {
    hypothesis.is_measured |= first_ != nullptr;  // of so many pairs, one has a few bits by chance
    hypothesis.is_fitted |= is_second(hypothesis) && first_->is_fitted;
  }
  std::vector<std::optional<Explanation>> explanations(hypotheses.size());
  const auto judge_one = [&](std::size_t i) {
    explanations[i] = judged(subject, glance, hypotheses[i], is_fault(hypotheses[i]) ? baseline : nullptr);
  };
  if (hypotheses.size() == 1) {
    judge_one(0);  // with all threads
  } else {
    core::parallel_for(hypotheses.size(), judge_one);
  }
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const bool predicts = first_ == nullptr && explanations[i]->passes && !explanations[i]->is_consistent_only;
    if (!is_explained(hypotheses[i], predicts)) {  // by one before it
      take(std::move(hypotheses[i]), *std::move(explanations[i]));
    }
  }
  hypotheses.clear();
}

bool Trials::is_second(const Hypothesis& hypothesis) const {
  return first_ != nullptr && family_of(hypothesis) != family_of(*first_);  // otherwise it takes the first one's place
}

void Trials::name_beside_first(Explanation& explanation) const {
  explanation.name = fmt::format("{} + {}", first_->name, explanation.name);
  explanation.cause = fmt::format("two causes: {}; and {}", first_->cause, explanation.cause);
  explanation.remedy = fmt::format("{} {}", first_->remedy, explanation.remedy);
}

std::optional<Explanation> Trials::without_first(Hypothesis second) {
  const Trial& first = first_->trial;
  Trial alone = as_declared(subject_);
  const bool is_of_case = first.c.params == subject_.c.params && first.c.mode == subject_.c.mode;
  const bool is_of_inputs = first.inputs == subject_.inputs;
  const bool changes_case = second.trial.c.params != first.c.params || second.trial.c.mode != first.c.mode;
  const bool changes_inputs = second.trial.inputs != first.inputs;
  if (first.instead || !first.stored.empty() || (changes_case && !is_of_case) || (changes_inputs && !is_of_inputs)) {
    return std::nullopt;  // what is the first one's cannot be told from what is the second one's
  }
  alone.c = changes_case ? second.trial.c : alone.c;
  alone.inputs = changes_inputs ? second.trial.inputs : alone.inputs;
  const auto take = [&](auto Trial::* part) {  // what the second one has of its own
    if (second.trial.*part != first.*part) {
      alone.*part = second.trial.*part;
    }
  };
  take(&Trial::ran);
  take(&Trial::conversion);
  take(&Trial::rounding);
  take(&Trial::fault);
  alone.instead = second.trial.instead;
  alone.then = second.trial.then;
  alone.stored = second.trial.stored;
  second.trial = std::move(alone);
  const std::optional<Explanation> baseline =
      is_fault(second) ? std::optional(explained_without_fault(subject_)) : std::nullopt;
  Explanation explanation = explain(subject_, second, declared(baseline.has_value() ? &*baseline : nullptr), flops_);
  return explanation.passes && !explanation.is_consistent_only ? std::optional(std::move(explanation)) : std::nullopt;
}

Declared Trials::declared(const Explanation* without_fault) const {
  constexpr std::uint64_t kMuch = 100;  // of all elements
  return {diagnosis_.port,
          diagnosis_.rms_error,
          diagnosis_.unjudged,
          diagnosis_.unjudged + diagnosis_.of / kMuch,
          is_exact_,
          diagnosis_.equal_bits,
          diagnosis_.rms_error > 0,
          &diagnosis_.declared,
          without_fault,
          is_drawn_};
}

Explanation Trials::judged(const Subject& subject, const Glance& glance, const Hypothesis& hypothesis,
                           const Explanation* without_fault) const {
  const Declared as_declared = declared(without_fault);
  std::optional<Explanation> seen = glance.dismissed(hypothesis, as_declared, flops_);
  return seen.has_value() ? *std::move(seen) : explain(subject, hypothesis, as_declared, flops_);
}

void Trials::take(Hypothesis hypothesis, Explanation explanation) {
  explanation.is_pair = is_second(hypothesis);
  if (explanation.is_pair && explanation.passes && explanation.is_consistent_only) {
    explanation.passes = false;  // what allows for what is left, and predicts none of it, is no second cause
  }
  if (first_ == nullptr && !explanation.passes) {
    const double share = std::max(explanation.share, share_if_scaled(explanation));
    const bool is_idle = is_fault(hypothesis) && leaves_no_less(explanation);
    if (!is_idle) {
      firsts_.remember({std::move(hypothesis), share, explanation.rms_left, explanation.cosine});
    }
  } else if (explanation.is_pair && explanation.passes) {
    if (std::optional<Explanation> alone = without_first(std::move(hypothesis)); alone.has_value()) {
      explanation = *std::move(alone);
    } else {
      name_beside_first(explanation);
    }
  }
  const auto same = std::ranges::find(diagnosis_.passing, explanation.name, &Explanation::name);
  if (explanation.passes && same != diagnosis_.passing.end()) {
    // What a computation in double and one on a simulated device both prove is one cause, and the better proof counts.
    if (is_better_proof(explanation, *same)) {
      *same = std::move(explanation);
    }
    return;
  }
  if (explanation.passes) {
    diagnosis_.passing.push_back(std::move(explanation));
  } else if (first_ == nullptr) {
    diagnosis_.excluded.push_back(std::move(explanation));
  } else {
    ++diagnosis_.pairs_tried;
  }
}

Explanation Trials::explained_without_fault(const Subject& subject) const {
  Hypothesis none{.name = "no fault", .family = {}, .cause = {}, .remedy = {}, .trial = as_declared(subject)};
  none.trial.fault = "";
  Declared anything = declared(nullptr);
  anything.most_unjudged = diagnosis_.of;
  anything.run = nullptr;
  return explain(subject, none, anything, flops_);
}

const Explanation* Trials::without_fault(const Subject& subject) {
  if (!simulated_.has_value()) {
    simulated_ = explained_without_fault(subject);
  }
  return &*simulated_;
}

bool Trials::leaves_no_less(const Explanation& fault) const {
  constexpr double kSomething = 0.02;
  return simulated_.has_value() && simulated_->of > 0 &&
         std::pow(fault.rms_left, 2) > (1 - kSomething) * std::pow(simulated_->rms_left, 2) &&
         !gains_bits(fault.equal_bits, simulated_->equal_bits, fault.of);
}

double Trials::share_if_scaled(const Explanation& explanation) const {
  const double left = 1 - explanation.cosine * explanation.cosine;
  const double declared = 1 - diagnosis_.cosine * diagnosis_.cosine;
  return declared > 0 ? 1 - left / declared : 0;
}

}  // namespace numcheck::diagnose
