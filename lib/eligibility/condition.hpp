// Conditions on facts, as trees of plain types.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "eligibility/facts.hpp"

namespace numcheck::eligibility {

/// A condition on a fact that is unknown is neither true nor false.
enum class Truth : std::uint8_t { no, unknown, yes };

/// Both ends are inclusive.
struct NumberRange {
  std::int64_t from = std::numeric_limits<std::int64_t>::min();
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
  std::int64_t multiple_of = 1;
};

/// The number is in one of the ranges.
struct NumberIs {
  NumberFact fact;
  std::vector<NumberRange> ranges;
};

/// The word is one of the list.
struct WordIs {
  WordFact fact;
  std::vector<std::string> words;
};

struct FlagIs {
  FlagFact fact;
  bool value;
};

struct Condition;

/// At least one of them holds.
struct AnyOf {
  std::vector<Condition> conditions;
};

/// It does not hold; exactly one.
struct NoneOf {
  std::vector<Condition> conditions;
};

/// All terms hold.
struct Condition {
  std::vector<std::variant<NumberIs, WordIs, FlagIs, AnyOf, NoneOf>> terms;
};

/// Kleene's logic: "no" if a term is, whatever is unknown.
[[nodiscard]] Truth evaluate(const Condition& condition, const Facts& facts);

}  // namespace numcheck::eligibility
