#include "reference/gemm_replay_count.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <set>

#include <fmt/format.h>

namespace numcheck::reference {
namespace {

constexpr std::int64_t kTile = 64;
// Of what chance explains: errors may be larger than V says, and few elements may be added in another order.
constexpr double kSlack = 3, kShare = 0.01;
constexpr double kLeastBits = 1;  // that the roundings save

double log2_binomial(double n, double x) {
  return (std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1)) / std::log(2.0);
}

/// Of a prediction for an element.
std::uint64_t signature(std::int64_t index, double predicted) {
  std::uint64_t bits =
      std::bit_cast<std::uint64_t>(predicted) ^ static_cast<std::uint64_t>(index) * 0x9e3779b97f4a7c15U;
  bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93U;
  return bits ^ bits >> 32;
}

constexpr double kSigmas = 6;

/// So many of the elements may have other bits because their sums are off.
double most_by_errors(const Count& count) {
  const double expected = kSlack * count.expected;
  // However large errors are, an element is rounded either way with the same probability.
  const double either = (count.expected + count.elements + kSigmas * std::sqrt(count.elements)) / 2;
  return std::min(expected + kSigmas * std::sqrt(expected), either);
}

/// Of a Poisson distribution with that mean, the largest number that it reaches once in a hundred times.
double most_of_improbable(double mean) {
  constexpr double kChance = 0.01;
  double number = 0, term = std::exp(-mean), below = 0;
  while (below + term < 1 - kChance) {  // a mean of 4 at most, of 4096 improbable ones
    below += term;
    term *= mean / ++number;
  }
  return number;
}

/// So many of the elements may have other bits than predicted.
double most_by_chance(const Count& count) {
  return most_by_errors(count) + std::floor(kShare * count.elements);
}

/// Where most elements repeat others, each is a row or a column, and all may share the error of one sum: how many of those that are
/// close to a boundary cross it together says nothing, but none of the others may.
bool contradicts(const Count& count) {
  constexpr double kRepeated = 2;
  return count.stored >= kRepeated * count.elements ? count.odd > most_of_improbable(kSlack * count.odd_expected)
                                                    : count.other > most_by_chance(count);
}

/// What it takes to say which x of the elements.
double bits_of(const Count& count, double x) {
  return x + log2_binomial(count.elements, x);
}

/// So many of a group have other bits with a probability of at most e^-improbability (Chernoff's bound of a Poisson sum).
double improbability(const Count& count) {
  constexpr double kShareOfGroup = 0.003;
  const double mean = kSlack * count.expected + kShareOfGroup * count.elements;
  return count.other > mean ? count.other * std::log(count.other / mean) - count.other + mean : 0;
}

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

void Count::add(const Count& more) noexcept {
  elements += more.elements;
  stored += more.stored;
  other += more.other;
  expected += more.expected;
  odd += more.odd;
  odd_expected += more.odd_expected;
  telling += more.telling;
  told += more.told;
  astray += more.astray;
  single += more.single;
  signature += more.signature;
}

Count count_of(std::int64_t index, double got, const Prediction& once, const Prediction& more) {
  const bool finite =
      std::isfinite(got) && std::isfinite(once.low) && std::isfinite(more.low) && std::isfinite(more.high);
  if (!finite) {
    return {};
  }
  constexpr double kProbable = 1e-3;
  const bool is_improbable = kSlack * more.otherwise < kProbable;
  const bool as_predicted = more.low <= got && got <= more.high;
  const bool telling = once.high < more.low || once.low > more.high;
  return {.elements = 1,
          .stored = 1,
          .other = as_predicted ? 0.0 : 1.0,
          .expected = std::min(1.0, more.otherwise),
          .odd = is_improbable && !as_predicted ? 1.0 : 0.0,
          .odd_expected = is_improbable ? more.otherwise : 0.0,
          .telling = telling ? 1.0 : 0.0,
          .told = telling && as_predicted ? 1.0 : 0.0,
          .astray = got < more.low - more.astray || got > more.high + more.astray ? 1.0 : 0.0,
          .single = more.low == more.high ? 1.0 : 0.0,
          .signature = signature(index, more.low)};
}

double distinct(const std::vector<Count>& ways) {
  std::set<std::uint64_t> signatures;
  for (const Count& count : ways) {
    signatures.insert(count.signature);
  }
  return static_cast<double>(signatures.size());
}

bool shows(const Count& count, const op::EarlyRounding& rounding, double ways) {
  constexpr double kLeastTold = 0.8;
  if (!(count.elements > 0) || contradicts(count)) {
    return false;
  }
  const bool uncontradicted = count.telling == 0 && count.other == 0 && 2 * count.single >= count.elements;
  if (!rounding.rounds() || uncontradicted) {
    return true;
  }
  return count.told >= kLeastTold * count.telling &&
         bits_of(count, count.told) - bits_of(count, count.other) - std::log2(ways) >= kLeastBits;
}

bool beyond_chance(const Count& count) {
  return count.other > most_by_errors(count);
}

bool too_few(const Count& count, const op::EarlyRounding& rounding, double ways) {
  const double most = most_by_chance(count);
  if (!(count.elements > 0) || !rounding.rounds() || contradicts(count) || count.telling - count.told > most) {
    return false;
  }
  const double against = bits_of(count, std::min(most, count.elements / 2));
  return bits_of(count, count.telling) - against - std::log2(ways) < kLeastBits;
}

GroupCounts::GroupCounts(const ProductShape& shape) : shape_(shape), tiles_across_((shape.n + kTile - 1) / kTile) {
  const std::int64_t tiles = (shape.batch * shape.m + kTile - 1) / kTile * tiles_across_;
  groups_ = {{"row", std::vector<Count>(at(shape.batch * shape.m))},
             {"column", std::vector<Count>(at(shape.n))},
             {"64 x 64 tile", std::vector<Count>(at(tiles))},
             {"matrix", std::vector<Count>(at(shape.batch))}};
}

void GroupCounts::add(std::int64_t index, const Count& count) {
  const std::int64_t row = index / shape_.n, column = index % shape_.n;
  groups_[0].counts[at(row)].add(count);
  groups_[1].counts[at(column)].add(count);
  groups_[2].counts[at(row / kTile * tiles_across_ + column / kTile)].add(count);
  groups_[3].counts[at(row / shape_.m)].add(count);
}

std::string GroupCounts::uneven() const {
  constexpr double kMost = 18.4;  // -ln 10^-8
  double most = kMost;
  std::string found;
  for (const Groups& groups : groups_) {
    for (std::size_t i = 0; i < groups.counts.size(); ++i) {
      const Count& count = groups.counts[i];
      if (const double improbable = improbability(count); improbable > most) {
        most = improbable;
        found = fmt::format("{} {} ({:.0f} of {:.0f})", groups.name, i, count.other, count.elements);
      }
    }
  }
  return found;
}

}  // namespace numcheck::reference
