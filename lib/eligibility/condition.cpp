#include "eligibility/condition.hpp"

#include <algorithm>

namespace numcheck::eligibility {
namespace {

Truth of(bool value) {
  return value ? Truth::yes : Truth::no;
}

Truth any(const std::vector<Condition>& conditions, const Facts& facts) {
  Truth found = Truth::no;
  for (const Condition& condition : conditions) {
    found = std::max(found, evaluate(condition, facts));
  }
  return found;
}

/// One term of a condition.
struct Term {
  Truth operator()(const NumberIs& term) const {
    const std::optional<std::int64_t> number = facts.number(term.fact);
    if (!number) {
      return Truth::unknown;
    }
    return of(std::ranges::any_of(term.ranges, [value = *number](const NumberRange& range) {
      return range.from <= value && value <= range.to && value % range.multiple_of == 0;
    }));
  }
  Truth operator()(const WordIs& term) const {
    return of(std::ranges::find(term.words, facts.word(term.fact)) != term.words.end());
  }
  Truth operator()(const FlagIs& term) const { return of(facts.flag(term.fact) == term.value); }
  Truth operator()(const AnyOf& term) const { return any(term.conditions, facts); }
  Truth operator()(const NoneOf& term) const {
    const Truth found = any(term.conditions, facts);
    return found == Truth::unknown ? found : of(found == Truth::no);
  }

  const Facts& facts;
};

}  // namespace

Truth evaluate(const Condition& condition, const Facts& facts) {
  Truth found = Truth::yes;
  for (const auto& term : condition.terms) {
    found = std::min(found, std::visit(Term{facts}, term));
  }
  return found;
}

}  // namespace numcheck::eligibility
