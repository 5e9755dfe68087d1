// The trials of a search: hypotheses of the catalogue, one by one and in pairs.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "diagnose/explanation.hpp"
#include "diagnose/first_causes.hpp"
#include "diagnose/glance.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/search.hpp"

namespace numcheck::diagnose {

/// Which rows of the catalogue a subject is for: of a part of an output, those that do not need all of it.
enum class Rows { all, needing_all, needing_part };

/// Tries what the catalogue has, and remembers what explains most. Subject and diagnosis must outlive this object.
class Trials {
 public:
  /// `facts`: what is known of the subject's elements as declared; null: nothing yet. It must outlive this object.
  Trials(const Subject& subject, Diagnosis& diagnosis, double flops, const FactsByPort* facts = nullptr)
      : subject_(subject), diagnosis_(diagnosis), flops_(flops), facts_(facts) {}

  /// After that time from now on, single causes are not tried any more, but for those of the last resort.
  void end_singles_after(double seconds);

  /// Tries the hypotheses of a stage's rows, until one of a family explains the output.
  void try_rows(const Evidence& evidence, Stage stage, Rows rows = Rows::all);
  /// The first cause is one of those that explained most, the second one any: first another of these, but beside a cause of nearly
  /// all the error any at once. Ends after that time.
  void try_pairs(double seconds);
  /// Calls body(evidence) with what is expected of the subject, if anything is expected of that output.
  void with_evidence(const Subject& subject, const std::function<void(const Evidence&)>& body);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Second { likely, other };

  /// Pairs with one of these as the first cause. False once one of them explains the output, or there is no time left.
  bool try_firsts(std::span<const FirstCause> firsts, Second second);
  /// What could be the second cause beside that one.
  void try_with(const Hypothesis& first);
  /// False of a second cause of another turn.
  [[nodiscard]] bool is_for_now(const Hypothesis& hypothesis) const;
  /// A row that fails is one less, and says so: with a known cause, its references may not exist.
  static std::vector<Hypothesis> made_by(const CatalogueRow& row, const Evidence& evidence,
                                         std::vector<Explanation>& failed);
  /// By another one of its family. What only allows for the errors does not stand in the way of a single cause that
  /// predicts them.
  [[nodiscard]] bool is_explained(const Hypothesis& hypothesis, bool by_what_predicts) const;
  /// Judges them, one on each thread, and takes what is found as if they had been judged one after another; none is left.
  void add_all(const Subject& subject, const Glance& glance, std::vector<Hypothesis>& hypotheses);
  /// Whether it is the second of two causes.
  [[nodiscard]] bool is_second(const Hypothesis& hypothesis) const;
  /// Of two causes, says both.
  void name_beside_first(Explanation& explanation) const;
  /// What the second of two causes explains by itself, although nobody would have looked for it without the first one; nothing
  /// if that is not all.
  [[nodiscard]] std::optional<Explanation> without_first(Hypothesis second);
  /// What explanations are measured against.
  [[nodiscard]] Declared declared(const Explanation* without_fault) const;
  [[nodiscard]] Explanation judged(const Subject& subject, const Glance& glance, const Hypothesis& hypothesis,
                                   const Explanation* without_fault) const;
  void take(Hypothesis hypothesis, Explanation explanation);
  [[nodiscard]] Explanation explained_without_fault(const Subject& subject) const;
  /// Whether a simulated fault explains no more than the simulated device without one, whose outputs are rounded as the output is.
  [[nodiscard]] bool leaves_no_less(const Explanation& fault) const;
  /// What the simulated device explains without a fault.
  const Explanation* without_fault(const Subject& subject);
  /// The share of what no factor explains: of d and y, 1 - cos^2 of their angle is left with the best one.
  [[nodiscard]] double share_if_scaled(const Explanation& explanation) const;
  const Subject& subject_;
  Diagnosis& diagnosis_;
  double flops_;
  const FactsByPort* facts_;
  Clock::time_point end_of_singles_ = Clock::time_point::max();
  std::optional<Explanation> simulated_;  ///< without_fault, of the subject whose rows are tried
  bool is_exact_ = false;                 ///< the output: moved, cast or drawn
  bool is_drawn_ = false;                 ///< the output
  Clock::time_point end_ = Clock::time_point::max();
  const Hypothesis* first_ = nullptr;  ///< the first of two causes
  Second second_ = Second::likely;     ///< whose turn it is
  std::set<std::string> likely_;       ///< families of causes that explain most by themselves
  FirstCauses firsts_;
};

}  // namespace numcheck::diagnose
