#include "tolerance/replayed_scale.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tolerance/gate_table.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::uint64_t kFewestOutputs = 128;
constexpr std::uint64_t kFewestTelling = 32;  // outputs that the expected values leave unexplained
constexpr std::uint64_t kRest = 16;           // of which one in so many may be unexplained by the replayed values
constexpr std::uint64_t kFewestMoved = 8;     // outputs that only a factor explains
constexpr std::uint64_t kFewestNumbers = 8;   // that were stored: some factor makes a few numbers of any other few

/// The x of (1 + x) p that are rounded to what was stored.
struct Interval {
  double low, high;
};

Interval interval_of(const ReplayedOutput& output, double predicted) {
  const double low = output.low / predicted - 1, high = output.high / predicted - 1;
  return {std::min(low, high), std::max(low, high)};
}

bool has_factor(double predicted) {
  return std::isfinite(predicted) && predicted != 0;
}

bool is_telling(std::uint64_t count, std::uint64_t expected, std::uint64_t numbers) {
  return count >= kFewestOutputs && count - expected >= kFewestTelling && numbers >= kFewestNumbers;
}

/// How many different numbers were stored.
std::uint64_t numbers_of(std::span<const ReplayedOutput> outputs) {
  std::set<double> numbers;
  for (const ReplayedOutput& output : outputs) {
    if (has_factor(output.expected)) {
      numbers.insert(output.low);
    }
    if (numbers.size() >= kFewestNumbers) {
      break;
    }
  }
  return numbers.size();
}

/// Most intervals that share a point, and where; of several such places the one closest to 0.
struct Most {
  std::uint64_t count = 0;
  double low = 0, high = 0;
};

double distance_from_zero(double low, double high) {
  return std::max({0.0, low, -high});
}

Most most_shared(const std::vector<Interval>& intervals) {
  std::vector<std::pair<double, int>> ends;
  for (const Interval& interval : intervals) {
    ends.emplace_back(interval.low, 0);  // sorted before the ends at the same place
    ends.emplace_back(interval.high, 1);
  }
  std::ranges::sort(ends);
  Most most;
  std::uint64_t open = 0;
  for (std::size_t n = 0; n < ends.size(); ++n) {
    if (ends[n].second == 1) {
      --open;
      continue;
    }
    ++open;
    const bool last_start = ends[n + 1].second == 1;
    if (!last_start || open < most.count) {
      continue;
    }
    const double low = ends[n].first, high = ends[n + 1].first;
    if (open > most.count || distance_from_zero(low, high) < distance_from_zero(most.low, most.high)) {
      most = {open, low, high};
    }
  }
  return most;
}

}  // namespace

bool ScaleFit::identified() const noexcept {
  return is_telling(count, expected, numbers) && (count - scaled) * kRest <= count - expected;
}

bool are_telling(std::span<const ReplayedOutput> outputs) {
  std::vector<Interval> intervals;
  for (const ReplayedOutput& output : outputs) {
    if (has_factor(output.expected)) {
      intervals.push_back(interval_of(output, output.expected));
    }
  }
  return is_telling(intervals.size(), most_shared(intervals).count, numbers_of(outputs));
}

ScaleFit fit_scale(std::span<const ReplayedOutput> outputs) {
  ScaleFit fit;
  std::vector<Interval> of_replayed, of_expected;
  for (const ReplayedOutput& output : outputs) {
    if (has_factor(output.replayed) && has_factor(output.expected)) {
      of_expected.push_back(interval_of(output, output.expected));
      const Interval& interval = of_replayed.emplace_back(interval_of(output, output.replayed));
      fit.unscaled += interval.low <= 0 && 0 <= interval.high ? 1 : 0;
    }
  }
  const Most most = most_shared(of_replayed);
  fit.count = of_replayed.size();
  fit.numbers = numbers_of(outputs);
  fit.scaled = most.count;
  fit.low = most.low;
  fit.high = most.high;
  fit.expected = most_shared(of_expected).count;
  return fit;
}

std::optional<Criterion> judge_scale(const ScaleFit& fit, const model::ErrorModel& model, std::string_view schedule) {
  const double drift = std::fabs(model.slope_low) + std::fabs(model.slope_coherent);
  // Of outputs that repeat, as many have the same bits by chance as there are of one.
  if (!fit.identified() || !std::isfinite(model.slope_slack) || model.rows_agree || model.columns_agree) {
    return {};
  }
  const bool moved = fit.scaled - fit.unscaled >= kFewestMoved;
  const double rest = static_cast<double>(fit.count - fit.scaled) / static_cast<double>(fit.count - fit.expected);
  const double measured = moved ? distance_from_zero(fit.low, fit.high) : 0;
  const double limit = model.slope_slack + kReplayedFactors + rest * drift;
  std::string source = fmt::format("{} of {} outputs have the bits of {}", fit.unscaled, fit.count, schedule);
  if (measured > limit) {
    source += fmt::format(", {} with all sums multiplied by 1 {} {:.2g}", fit.scaled, fit.low > 0 ? '+' : '-',
                          distance_from_zero(fit.low, fit.high));
  }
  return Criterion{std::string(gate_name(Gate::replayed_scale)), measured, limit, measured <= limit, std::move(source)};
}

}  // namespace numcheck::tolerance
