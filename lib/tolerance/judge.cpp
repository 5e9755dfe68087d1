#include "tolerance/judge.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "metric/setup.hpp"
#include "model/expected_class.hpp"
#include "tolerance/gate_table.hpp"
#include "tolerance/slope_limit.hpp"

namespace numcheck::tolerance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Collects criteria; ok = measured <= limit, so that NaN fails.
class Gates {
 public:
  explicit Gates(std::string model_source) : model_source_(std::move(model_source)) {}

  void add(Gate gate, double measured, double limit, std::string source) {
    criteria_.push_back({std::string(gate_name(gate)), measured, limit, measured <= limit, std::move(source)});
  }
  void add_about(Criterion::About about, Gate gate, double measured, std::string source) {
    add(gate, measured, 0, std::move(source));
    criteria_.back().about = about;
  }
  void add_conduct(Gate gate, double measured, std::string source, Criterion::About about = Criterion::About::conduct) {
    add_about(about, gate, measured, std::move(source));
  }
  void add_model(Gate gate, double measured, double limit) { add(gate, measured, limit, model_source_); }
  /// For the last gate: half an ulp of the output is part of its limit, and correct rounding uses all of that.
  void mark_rounding() { criteria_.back().about = Criterion::About::rounding; }
  [[nodiscard]] std::vector<Criterion> take() { return std::move(criteria_); }

 private:
  std::string model_source_;
  std::vector<Criterion> criteria_;
};

double count(std::uint64_t n) {
  return static_cast<double>(n);
}

void add_pattern(Gates& gates, const metric::Statistics& s, const RunFacts& facts) {
  gates.add_about(Criterion::About::pattern, Gate::pattern, count(s.nonfinite_mismatch),
                  "NaN and infinities where the reference has them");
  gates.add_about(Criterion::About::unwritten, Gate::unwritten, count(s.poison),
                  "elements that still hold the poison pattern");
  gates.add_conduct(Gate::guards, facts.guards_intact && facts.inputs_intact ? 0 : 1,
                    facts.guards_intact ? (facts.inputs_intact ? "guards and inputs intact" : "an input was changed")
                                        : "memory outside an output was written");
  gates.add_conduct(Gate::determinism, facts.deterministic ? 0 : 1,
                    facts.deterministic ? "repeated runs give the same bits" : "repeated runs give different bits",
                    Criterion::About::repetition);
}

void add_class(Gates& gates, const RunFacts& facts) {
  if (facts.observed == model::PrecisionClass::unknown || facts.expected == model::PrecisionClass::native) {
    return;
  }
  const bool honoured = model::acceptable_class(facts.expected, facts.observed);
  gates.add_conduct(
      Gate::precision_class, honoured ? 0 : 1,
      fmt::format("expected {}, observed {}", model::class_name(facts.expected), model::class_name(facts.observed)));
}

/// kappa is how much larger all errors may be than predicted; those of single elements are at most twice that of the whole, as
/// those of groups are.
double largest_factor(const metric::Statistics& s, const model::ErrorModel& model) {
  constexpr double kUneven = 2;
  return has_rms(s) ? std::min(model.kappa, kUneven * std::max(1.0, s.z_rms)) : model.kappa;
}

/// A rounding error of half an ulp is sqrt(3) times the rms of such errors, so that of a 16- or 8-bit output only larger errors
/// of the arithmetic show in quantiles, and G4 judges the largest.
void add_spread(Gates& gates, const metric::Statistics& s, const model::ErrorModel& model) {
  constexpr double kFewestForQuantile =
      1000;                                // independent errors: of fewer, it is the largest, which has its own gate
  constexpr double kQuantile = 0.001;      // of the elements are larger
  constexpr double kQuantileFactor = 3.3;  // 99.9 % of a normal variable lies within 3.29 standard deviations
  const bool narrow = core::dtype_info(model.output).storage_bytes < 4;
  if (has_rms(s)) {
    gates.add_model(Gate::rms, s.z_rms, model.kappa);
  }
  const double wide = count(s.counted()) - count(s.zeros_got) - count(s.flips.back().count);
  const bool shows = !narrow || wide >= kQuantile * count(s.counted());
  if (shows && count(s.counted()) >= kFewestForQuantile * s.copies) {
    gates.add_model(Gate::quantile, s.z_q999, kQuantileFactor * model.kappa);
  }
  if (!narrow) {
    gates.add_model(Gate::largest, s.z_max, lambda_of(s.elements) * largest_factor(s, model));
  }
}

/// The group of all rows, columns, tiles and matrices that is closest to its limit.
void add_groups(Gates& gates, const metric::Groups& groups) {
  if (groups.row.unit == 0) {
    return;
  }
  struct Named {
    const metric::Group& group;
    std::string_view name;
  };
  const std::array all = {Named{groups.row, groups.rows_of_heads ? "head's row" : "row"},
                          Named{groups.column, "column"}, Named{groups.tile, "64 x 64 tile"},
                          Named{groups.matrix, "matrix"}};
  std::int64_t count = 0;
  for (const Named& one : all) {
    count += one.group.count;
  }
  const double lambda = lambda_of(static_cast<std::uint64_t>(count));
  // What has no more than is expected of it shows as 0.
  const auto share = [&](const metric::Group& group, double sum) {
    return sum <= 0 ? 0 : std::sqrt(sum / static_cast<double>(group.elements));
  };
  const auto limit = [&](const metric::Group& group) { return group.unit * group.copies * lambda * lambda / 2; };
  const auto ratio = [&](const Named& one) { return one.group.excess / limit(one.group); };
  const auto* closest = std::ranges::find_if(all, [](const Named& one) { return std::isnan(one.group.excess); });
  closest = closest == all.end() ? std::ranges::max_element(all, {}, ratio) : closest;
  const metric::Group& group = closest->group;
  gates.add(Gate::homogeneity, share(group, group.excess), share(group, limit(group)),
            fmt::format("{} {} of {}", closest->name, group.index, group.count));
}

/// The block of rows, or the head, that is closest to its limit.
void add_block(Gates& gates, const metric::Statistics& s) {
  const metric::BlockSlope& block = s.block;
  if (block.count == 0) {
    return;
  }
  gates.add(
      Gate::block_slope, std::fabs(block.slope), block.limit(),
      fmt::format("rows {} to {} of head {}, matrix {} (from 0) are {:.3g} % too {}; the worst of {} blocks and heads",
                  block.first_row, block.first_row + block.rows - 1, block.head, block.matrix,
                  100 * std::fabs(block.slope), block.slope > 0 ? "large" : "small", block.count));
}

void add_slope(Gates& gates, const metric::Statistics& s, const model::ErrorModel& model) {
  if (const std::optional<double> limit = slope_limit(s, model)) {
    gates.add_model(Gate::slope, std::abs(s.slope), *limit);
  }
}

/// Of the widths, the one that is closest to its limit. Nothing is asked where all elements may share a factor whose error is
/// like the output's own rounding: it may flip any number of them.
void add_flips(Gates& gates, const metric::Statistics& s, const model::ErrorModel& model) {
  constexpr double kMuch = 0.25;
  if (model.slope_slack > kMuch * core::dtype_info(model.output).unit_roundoff) {
    return;
  }
  const metric::Flips* closest = nullptr;
  double limit = 1;
  const auto share = [](const metric::Flips& flips) { return count(flips.found) / count(flips.count); };
  for (const metric::Flips& flips : s.flips) {
    const double most = (flips.allowed + most_of(flips.copies * flips.allowed, flips.copies)) / count(flips.count);
    if (most < 1 && (closest == nullptr || share(flips) / most > share(*closest) / limit)) {
      closest = &flips, limit = most;
    }
  }
  if (closest != nullptr) {
    gates.add(Gate::flips, share(*closest), limit,
              fmt::format("{} of {} numbers are not the nearest {}; errors of twice the predicted variance move {:.3g}",
                          closest->found, closest->count, core::dtype_info(model.output).name, closest->allowed));
  }
}

void add_rounding(Gates& gates, const metric::Statistics& s, const model::ErrorModel& model) {
  if (core::dtype_info(model.output).storage_bytes >= 4) {
    return;
  }
  if (!model.one_error) {
    add_flips(gates, s, model);
  }
  gates.add_model(Gate::rounding_element, s.max_over_half_ulp, 1);
  gates.mark_rounding();
}

/// Of n elements with the sum m of their probabilities, all of them correct, few more than m are on the lattice. Elements
/// that share an error are counted as one; if all do, they are one number, which may be on it. So may most of those that lie within a
/// few of its steps.
void add_lattice(Gates& gates, const metric::Statistics& s, const model::ErrorModel& model) {
  if (model.rows_agree && model.columns_agree) {
    return;
  }
  const metric::Lattice* closest = nullptr;
  double measured = 0, limit = 1;
  constexpr double kFewestSteps = 16;
  for (const metric::Lattice& lattice : s.lattices) {
    if (s.spread_ulps < std::ldexp(kFewestSteps, lattice.bits)) {
      continue;
    }
    const double n = count(lattice.count) / s.copies;
    const double m = lattice.expected / s.copies;
    const double most = (m + most_of(m, 1)) / n;
    const double found = count(lattice.found) / count(lattice.count);
    if (most < 1 && (closest == nullptr || found / most > measured / limit)) {
      closest = &lattice, measured = found, limit = most;
    }
  }
  if (closest != nullptr) {
    gates.add(Gate::lattice, measured, limit,
              fmt::format("{} of {} numbers end in {} zeros, as {} do", closest->found, closest->count, closest->bits,
                          closest->bits == 16   ? "BF16's"
                          : closest->bits == 13 ? "TF32's and FP16's"
                                                : "sums of FP8 products"));
  }
}

/// What is said of a plan's limit that is so many times the error bound.
std::string worth_text(double over_bound) {
  return over_bound > kLooseLimit
             ? fmt::format("; at least {:.3g} times the error bound: accepts what no correct kernel does", over_bound)
             : std::string();
}

void add_plan(Gates& gates, const metric::Statistics& s, const plan::ToleranceSpec& extra) {
  if (extra.allclose_rtol || extra.allclose_atol) {
    std::string source =
        fmt::format("plan: |d - y| <= {} + {} |y|", extra.allclose_atol.value_or(0), extra.allclose_rtol.value_or(0));
    source += worth_text(s.plan_limit_over_bound);
    if (extra.allclose_rtol.value_or(0) == 0 && extra.allclose_atol.value_or(0) > 0 &&
        s.plan_atol_over_ulp < kFewestUlp) {
      source +=
          fmt::format("; atol is {:.3g} ulp of a typical output: correct rounding may miss it", s.plan_atol_over_ulp);
    }
    gates.add(Gate::allclose, count(s.plan_allclose.mismatches), 0, source);
  }
  if (extra.max_ulp) {
    gates.add(Gate::max_ulp, s.nonfinite_mismatch == 0 ? s.max_ulp : kInfinity, *extra.max_ulp,
              "plan" + worth_text(s.plan_ulp_over_bound));
  }
  if (extra.rel_l2) {
    gates.add(Gate::rel_l2, s.nonfinite_mismatch == 0 ? s.arithmetic.rel_l2 : kInfinity, *extra.rel_l2,
              "plan" + worth_text(s.plan_rel_l2_over_bound));
  }
}

}  // namespace

std::vector<Criterion> judge(const metric::Statistics& statistics, const model::ErrorModel& model,
                             const RunFacts& facts, const plan::ToleranceSpec& extra) {
  Gates gates(model.source);
  add_pattern(gates, statistics, facts);
  add_class(gates, facts);
  if (model.exact) {
    gates.add(Gate::exact, count(statistics.exact_mismatch), 0, model.exact_because);
  } else {
    gates.add_model(Gate::bound, statistics.max_over_bound, 1);
    if (core::dtype_info(model.output).storage_bytes < 4) {
      gates.mark_rounding();
    }
    add_spread(gates, statistics, model);
    add_slope(gates, statistics, model);
    add_rounding(gates, statistics, model);
    add_lattice(gates, statistics, model);
    add_groups(gates, statistics.groups);
    add_block(gates, statistics);
  }
  add_plan(gates, statistics, extra);
  return gates.take();
}

bool has_rms(const metric::Statistics& s) {
  constexpr std::uint64_t kFewest = 32;
  // The rms of 8 normal variables is above 3 once in 10^11 cases, that of 2 once in 10^4, that of one once in 400.
  constexpr double kFewestIndependent = 8;
  return s.counted() >= kFewest && count(s.counted()) >= kFewestIndependent * s.copies;
}

double tightest(const std::vector<Criterion>& criteria) {
  double worst = 0;
  for (const Criterion& c : criteria) {
    if (c.limit > 0 && !std::isnan(c.measured)) {
      worst = std::max(worst, c.measured == kInfinity ? kInfinity : c.measured / c.limit);
    } else if (!c.ok) {
      return kInfinity;
    }
  }
  return worst;
}

double lambda_of(std::uint64_t elements) {
  return metric::lambda_of(elements);
}

}  // namespace numcheck::tolerance
