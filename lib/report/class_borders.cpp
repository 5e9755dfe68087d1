#include "report/class_borders.hpp"

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace numcheck::report {
namespace {

constexpr std::int64_t kDivisors[] = {2, 4, 8, 16};

/// Smallest and largest value of a fact.
struct Extremes {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// Of the rows whose mark is `wanted`, which must exist.
Extremes extremes_of(const Fact& fact, const std::vector<bool>& inside, bool wanted) {
  Extremes found;
  bool any = false;
  for (std::size_t row = 0; row < inside.size(); ++row) {
    if (inside[row] == wanted) {
      const std::int64_t value = fact.values[row];
      found = any ? Extremes{std::min(found.low, value), std::max(found.high, value)} : Extremes{value, value};
      any = true;
    }
  }
  return found;
}

/// A condition on one fact.
struct Term {
  enum class Relation { divisible, not_divisible, at_most, at_least, equal, not_equal };
  const Fact* fact;
  Relation relation;
  std::int64_t operand;
  std::string_view reads_as;  ///< "=" if the range has one value, otherwise empty

  [[nodiscard]] bool holds(std::size_t row) const {
    const std::int64_t value = fact->values[row];
    switch (relation) {
      case Relation::divisible:
        return value % operand == 0;
      case Relation::not_divisible:
        return value % operand != 0;
      case Relation::at_most:
        return value <= operand;
      case Relation::at_least:
        return value >= operand;
      case Relation::equal:
        return value == operand;
      case Relation::not_equal:
        return value != operand;
    }
    return false;
  }

  [[nodiscard]] std::string text(bool negated = false) const {
    const auto write = [this](std::string_view sign) {
      return fact->kind == Fact::Kind::choice
                 ? fmt::format("{} {} {}", fact->name, sign, fact->labels.at(static_cast<std::size_t>(operand)))
                 : fmt::format("{} {} {}", fact->name, sign, operand);
    };
    switch (relation) {
      case Relation::divisible:
      case Relation::not_divisible:
        return fmt::format("{} % {} {} 0", fact->name, operand,
                           (relation == Relation::divisible) != negated ? "=" : "!=");
      case Relation::at_most:
        return write(negated ? ">" : reads_as.empty() ? "<=" : reads_as);
      case Relation::at_least:
        return write(negated ? "<" : reads_as.empty() ? ">=" : reads_as);
      case Relation::equal:
      case Relation::not_equal:
        return write((relation == Relation::equal) != negated ? "=" : "!=");
    }
    return {};
  }

  /// Terms with the same fact and form say nearly the same.
  [[nodiscard]] bool resembles(const Term& other) const {
    const auto form = [](const Term& term) { return static_cast<int>(term.relation) / 2; };
    return fact == other.fact && form(*this) == form(other);
  }
};

using Relation = Term::Relation;

/// All terms worth trying, in the order of find_border.
class Candidates {
 public:
  Candidates(std::span<const Fact> facts, const std::vector<bool>& inside) {
    for (const Fact& fact : facts) {
      const auto [in, out] = std::pair(extremes_of(fact, inside, true), extremes_of(fact, inside, false));
      const Extremes all{std::min(in.low, out.low), std::max(in.high, out.high)};
      if (all.low != all.high) {
        varying_.push_back({&fact, in, all});
      }
    }
    for (const Varying& v : varying_) {
      if (v.fact->kind == Fact::Kind::extent) {
        add_divisibility(v);
      }
    }
    for (const Varying& v : varying_) {
      if (v.fact->kind == Fact::Kind::extent) {
        add_ranges(v);
      }
    }
    for (const Varying& v : varying_) {
      add_others(v);
    }
  }

  [[nodiscard]] std::vector<Term> take() { return std::move(terms_); }

 private:
  struct Varying {
    const Fact* fact;
    Extremes inside;
    Extremes all;
  };

  void add_divisibility(const Varying& v) {
    for (const std::int64_t divisor : kDivisors) {
      terms_.push_back({v.fact, Relation::not_divisible, divisor, ""});
      terms_.push_back({v.fact, Relation::divisible, divisor, ""});
    }
  }

  void add_ranges(const Varying& v) {
    terms_.push_back({v.fact, Relation::at_most, v.inside.high, v.inside.high == v.all.low ? "=" : ""});
    terms_.push_back({v.fact, Relation::at_least, v.inside.low, v.inside.low == v.all.high ? "=" : ""});
  }

  void add_others(const Varying& v) {
    const Fact::Kind kind = v.fact->kind;
    if (kind == Fact::Kind::integer || kind == Fact::Kind::real) {
      terms_.push_back({v.fact, Relation::not_equal, 0, ""});
      terms_.push_back({v.fact, Relation::equal, 0, ""});
    }
    if (kind == Fact::Kind::integer) {
      add_ranges(v);
      add_divisibility(v);
    }
    for (const Relation relation : {Relation::equal, Relation::not_equal}) {
      for (std::int64_t label = v.all.low; kind == Fact::Kind::choice && label <= v.all.high; ++label) {
        terms_.push_back({v.fact, relation, label, ""});
      }
    }
  }

  std::vector<Varying> varying_;
  std::vector<Term> terms_;
};

constexpr std::size_t kMaxTerms = 256;
using Terms = std::bitset<kMaxTerms>;

/// The terms that hold for all rows inside, and what each of them lets in from outside.
class Search {
 public:
  Search(std::span<const Fact> facts, const std::vector<bool>& inside) : terms_(Candidates(facts, inside).take()) {
    for (std::size_t row = 0; row < inside.size(); ++row) {
      if (inside[row]) {
        std::erase_if(terms_, [row](const Term& term) { return !term.holds(row); });
      }
    }
    terms_.resize(std::min(terms_.size(), kMaxTerms), {nullptr, Relation::equal, 0, ""});
    shared_.resize(terms_.size());
    for (std::size_t row = 0; row < inside.size(); ++row) {
      if (!inside[row]) {
        add_outsider(row);
      }
    }
  }

  [[nodiscard]] std::vector<const Term*> singles() const {
    std::vector<const Term*> found;
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      if (shared_[i].none()) {
        found.push_back(&terms_[i]);
      }
    }
    return found;
  }

  [[nodiscard]] std::optional<std::pair<const Term*, const Term*>> pair() const {
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      for (std::size_t j = i + 1; j < terms_.size(); ++j) {
        if (!shared_[i][j]) {
          return std::pair(&terms_[i], &terms_[j]);
        }
      }
    }
    return std::nullopt;
  }

 private:
  void add_outsider(std::size_t row) {
    Terms holding;
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      holding[i] = terms_[i].holds(row);
    }
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      if (holding[i]) {
        shared_[i] |= holding;
      }
    }
  }

  std::vector<Term> terms_;
  std::vector<Terms> shared_;  ///< the terms that hold together with this one in a row outside
};

std::vector<std::string> alternatives(const std::vector<const Term*>& singles) {
  std::vector<std::string> also;
  for (std::size_t i = 1; i < singles.size(); ++i) {
    const auto earlier = std::span(singles).first(i);
    if (std::ranges::none_of(earlier, [&](const Term* term) { return term->resembles(*singles[i]); })) {
      also.push_back(singles[i]->text());
    }
  }
  return also;
}

}  // namespace

std::optional<Border> find_border(std::span<const Fact> facts, const std::vector<bool>& inside) {
  if (std::ranges::count(inside, true) == 0 || std::ranges::count(inside, false) == 0) {
    return std::nullopt;
  }
  const Search search(facts, inside);
  const std::vector<const Term*> singles = search.singles();
  if (!singles.empty()) {
    return Border{singles.front()->text(), alternatives(singles)};
  }
  if (const auto pair = search.pair()) {
    return Border{pair->first->text() + " and " + pair->second->text(), {}};
  }
  std::vector<bool> outside = inside;
  outside.flip();
  const Search others(facts, outside);
  const std::vector<const Term*> excluded = others.singles();
  if (!excluded.empty()) {
    return Border{excluded.front()->text(true), {}};
  }
  if (const auto pair = others.pair()) {
    return Border{pair->first->text(true) + " or " + pair->second->text(true), {}};
  }
  return std::nullopt;
}

}  // namespace numcheck::report
