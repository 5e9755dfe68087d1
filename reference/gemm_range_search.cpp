#include "reference/gemm_range_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "core/parallel.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kGridCells = 192;         // of the coarse grid of k
constexpr std::int64_t kTail = 16;               // ends that are tried one by one
constexpr std::int64_t kLongestSuspect = 16384;  // of which it is asked whether it was read from elsewhere
constexpr std::array<std::int64_t, 5> kDistances = {8, 16, 32, 64, 128};  // tiles and stages of k

/// Sums of products up to some borders of k, for every element: row b has borders()[b].
class Sums {
 public:
  Sums(const GemmResiduals& problem, std::vector<std::int64_t> borders)
      : problem_(problem), borders_(std::move(borders)), sums_(borders_.size() * problem.elements().size()) {
    const std::size_t count = problem.elements().size();
    core::parallel_for(count, [&](std::size_t i) {
      const Element& e = problem_.elements()[i];
      double sum = 0;
      std::int64_t t = borders_.front();
      for (std::size_t b = 0; b < borders_.size(); ++b) {
        for (; t < borders_[b]; ++t) {
          sum += problem_.product(e, t);
        }
        sums_[b * count + i] = sum;
      }
    });
  }

  [[nodiscard]] const std::vector<std::int64_t>& borders() const noexcept { return borders_; }

  /// Of the range between two borders.
  [[nodiscard]] Explanation explain(std::size_t first, std::size_t last) const {
    const std::vector<Element>& elements = problem_.elements();
    const double* low = &sums_[first * elements.size()];
    const double* high = &sums_[last * elements.size()];
    double with_residual = 0, with_itself = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const double sum = high[i] - low[i];
      with_residual += elements[i].residual * sum;
      with_itself += sum * sum;
    }
    Explanation found;
    found.kind = with_residual < 0 ? Explanation::Kind::missing : Explanation::Kind::twice;
    found.range = {borders_[first], borders_[last]};
    found.share = (2 * std::abs(with_residual) - with_itself) / problem_.energy();
    return found;
  }

 private:
  const GemmResiduals& problem_;
  std::vector<std::int64_t> borders_;
  std::vector<double> sums_;
};

/// Of equal explanations the shorter range: zeros among the operands leave its ends open.
bool is_better(const Explanation& candidate, const Explanation& than) {
  constexpr double kEqual = 1e-9;
  return candidate.share > than.share + kEqual ||
         (candidate.share > than.share - kEqual && candidate.range.size() < than.range.size());
}

Explanation better(const Explanation& x, const Explanation& y) {
  return is_better(y, x) ? y : x;
}

Explanation best_of(const std::vector<Explanation>& all) {
  return std::accumulate(all.begin(), all.end(), Explanation{}, better);
}

/// Every pair of borders.
Explanation best_pair(const Sums& sums) {
  const std::size_t count = sums.borders().size();
  std::vector<Explanation> best(count);
  core::parallel_for(count, [&](std::size_t first) {
    for (std::size_t last = first + 1; last < count; ++last) {
      best[first] = better(best[first], sums.explain(first, last));
    }
  });
  return best_of(best);
}

void sort_unique(std::vector<std::int64_t>& borders, std::int64_t k) {
  std::erase_if(borders, [k](std::int64_t border) { return border < 0 || border > k; });
  std::ranges::sort(borders);
  const auto rest = std::ranges::unique(borders);
  borders.erase(rest.begin(), rest.end());
}

/// The range whose products, taken one by one, explain most: the largest sum of a run of scores (Kadane).
Range best_run(const GemmResiduals& problem, double sign) {
  std::vector<double> score(static_cast<std::size_t>(problem.k()));
  core::parallel_for(score.size(), [&](std::size_t t) {
    for (const Element& e : problem.elements()) {
      const double u = problem.product(e, static_cast<std::int64_t>(t));
      score[t] += 2 * sign * e.residual * u - u * u;
    }
  });
  Range best, run;
  double most = 0, sum = 0;
  for (std::size_t t = 0; t < score.size(); ++t) {
    if (sum <= 0) {
      sum = 0;
      run.begin = static_cast<std::int64_t>(t);
    }
    sum += score[t];
    run.end = static_cast<std::int64_t>(t) + 1;
    if (sum > most) {
      most = sum;
      best = run;
    }
  }
  return best;
}

std::vector<std::int64_t> coarse_borders(const GemmResiduals& problem) {
  const std::int64_t k = problem.k();
  std::int64_t step = 8;
  while (k / step > kGridCells) {
    step *= 2;
  }
  std::vector<std::int64_t> borders;
  for (std::int64_t t = 0; t <= k; t += step) {
    borders.push_back(t);
  }
  for (std::int64_t s = 0; s <= kTail; ++s) {
    borders.push_back(s);
    borders.push_back(k - s);
  }
  for (std::int64_t slices = 2; slices <= 8; ++slices) {
    for (std::int64_t slice = 1; slice < slices; ++slice) {
      borders.push_back(k * slice / slices);
    }
  }
  for (const double sign : {-1.0, 1.0}) {
    const Range run = best_run(problem, sign);
    borders.insert(borders.end(), {run.begin, run.end});
  }
  sort_unique(borders, k);
  return borders;
}

/// Moves one end of the range, then the other, to where it explains most.
Explanation refined(const GemmResiduals& problem, Explanation found, std::int64_t reach) {
  for (const bool move_begin : {true, false, true}) {
    const std::int64_t moved = move_begin ? found.range.begin : found.range.end;
    const std::int64_t fixed = move_begin ? found.range.end : found.range.begin;
    std::vector<std::int64_t> borders = {fixed};
    for (std::int64_t t = moved - reach; t <= moved + reach; ++t) {
      borders.push_back(t);
    }
    sort_unique(borders, problem.k());
    const Sums sums(problem, std::move(borders));
    const auto at = static_cast<std::size_t>(std::ranges::find(sums.borders(), fixed) - sums.borders().begin());
    for (std::size_t b = 0; b < sums.borders().size(); ++b) {
      const bool fits = move_begin ? b < at : b > at;
      const Explanation candidate = fits ? sums.explain(std::min(b, at), std::max(b, at)) : Explanation{};
      if (fits && candidate.kind == found.kind && is_better(candidate, found)) {
        found = candidate;
      }
    }
  }
  return found;
}

Explanation read_elsewhere(const GemmResiduals& problem, const Range& range, const Source& from) {
  double left = 0;
  for (const Element& e : problem.elements()) {
    double predicted = 0;
    for (std::int64_t t = range.begin; t < range.end; ++t) {
      predicted += problem.product(e, t, from) - problem.product(e, t);
    }
    // Elements without such a source (of the last row) are left unexplained.
    const double rest = std::isfinite(predicted) ? e.residual - predicted : e.residual;
    left += rest * rest;
  }
  return {Explanation::Kind::elsewhere, range, from, 1 - left / problem.energy()};
}

/// The tails that a kernel may treat apart, and the range that the other hypotheses found.
Explanation best_elsewhere(const GemmResiduals& problem, const Range& suspect) {
  std::vector<Source> sources = {{.rows = 1}, {.columns = 1}, {.rows = 1, .columns = 1}};
  for (const std::int64_t distance : kDistances) {
    sources.push_back({.a_earlier = distance});
    sources.push_back({.b_earlier = distance});
    sources.push_back({.a_earlier = distance, .b_earlier = distance});
  }
  std::vector<std::pair<Range, Source>> candidates;
  const std::int64_t k = problem.k();
  for (const Source& source : sources) {
    if (suspect.size() <= kLongestSuspect) {
      candidates.emplace_back(suspect, source);
    }
    for (std::int64_t s = 1; s <= kTail; ++s) {
      candidates.emplace_back(Range{std::max<std::int64_t>(0, k - s), k}, source);
    }
    for (const std::int64_t tile : kDistances) {
      candidates.emplace_back(Range{std::max<std::int64_t>(0, k - tile), k}, source);
      candidates.emplace_back(Range{k - k % tile, k}, source);
    }
  }
  std::vector<Explanation> found(candidates.size());
  core::parallel_for(candidates.size(), [&](std::size_t i) {
    found[i] = read_elsewhere(problem, candidates[i].first, candidates[i].second);
  });
  // The last 64 read from 8 earlier give the same sum as the last 8 read from 64 earlier: the shorter range is meant.
  return best_of(found);
}

}  // namespace

Explanation best_explanation(const GemmResiduals& problem) {
  const Sums sums(problem, coarse_borders(problem));
  Explanation found = best_pair(sums);
  if (found.share > 0) {
    found = refined(problem, found, std::max<std::int64_t>(kTail, problem.k() / kGridCells));
  }
  return better(found, best_elsewhere(problem, found.range));
}

bool is_ambiguous(const GemmResiduals& problem, const Explanation& found, double lead) {
  constexpr std::int64_t kPlaces = 64;
  const std::int64_t size = found.range.size(), k = problem.k();
  std::vector<std::int64_t> borders;
  const std::int64_t step = std::max(size, (k + kPlaces - 1) / kPlaces);
  for (std::int64_t begin = 0; begin + size <= k; begin += step) {
    borders.insert(borders.end(), {begin, begin + size});
  }
  borders.insert(borders.end(), {k - size, k});
  sort_unique(borders, k);
  const Sums sums(problem, borders);
  for (std::size_t b = 0; b + 1 < borders.size(); ++b) {
    const Range other{borders[b], borders[b + 1]};
    const bool elsewhere = other.size() == size && (other.end <= found.range.begin || other.begin >= found.range.end);
    if (elsewhere && sums.explain(b, b + 1).share > found.share - lead) {
      return true;
    }
  }
  return false;
}

}  // namespace numcheck::reference
