#include "metric/compare.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>

#include "core/codec.hpp"
#include "metric/block_slopes.hpp"
#include "metric/clusters.hpp"
#include "metric/exact_pass.hpp"
#include "metric/merge.hpp"
#include "metric/pass.hpp"
#include "metric/repeats.hpp"
#include "metric/row_scan.hpp"
#include "metric/setup.hpp"

namespace numcheck::metric {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// 0 / 0 is 0: no error relative to nothing.
double ratio(double numerator, double denominator) {
  return numerator == 0 ? 0 : numerator / denominator;
}

ErrorNorms norms_of(const ErrorSums& sums, std::uint64_t count) {
  ErrorNorms norms;
  const auto n = static_cast<double>(count);
  const double e2 = total_of(sums.e2);
  const double y2 = total_of(sums.y2);
  const double ey = total_of(sums.ey);
  const double got2 = std::max(0.0, y2 + 2 * ey + e2);
  norms.max_abs = norms.linf = largest_of(sums.max_abs);
  norms.max_rel = sums.max_rel;
  norms.l1 = total_of(sums.abs_e);
  norms.l2 = std::sqrt(e2);
  norms.nmse = ratio(e2, y2);
  norms.rel_l2 = std::sqrt(norms.nmse);
  norms.rms = std::sqrt(ratio(e2, n));
  norms.mean_signed = ratio(total_of(sums.e), n);
  norms.sqnr_db = norms.nmse == 0 ? kInfinity : -10 * std::log10(norms.nmse);
  norms.cosine = y2 == 0 && got2 == 0 ? 1 : ratio(y2 + ey, std::sqrt(y2) * std::sqrt(got2));
  return norms;
}

/// Upper edge of the bin that holds the element of rank ceil(0.999 n), as z.
double quantile999(const PassResult& pass, std::uint64_t count, double z_max) {
  const auto rank = static_cast<std::uint64_t>(std::ceil(0.999 * static_cast<double>(count)));
  // Bin 0 also holds the zeros that stand for padding and removed elements.
  std::uint64_t below = 0;
  const std::uint64_t neutral = pass.specials.padding + pass.specials.removed;
  for (int bin = 0; bin < kSpreadBins; ++bin) {
    below += pass.spread[static_cast<std::size_t>(bin)] - (bin == 0 ? neutral : 0);
    if (below >= rank) {
      const auto edge = static_cast<std::uint64_t>(bin + 1 + ((1023 - 16) << 5)) << 47;
      return bin == kSpreadBins - 1 ? z_max : std::min(z_max, std::sqrt(std::bit_cast<double>(edge)));
    }
  }
  return z_max;
}

void add_rounding(const RoundingSums& sums, Statistics& out) {
  out.rounding_elements = total_of(sums.count);
  out.max_over_half_ulp = sums.max_over_half_ulp;
  if (out.rounding_elements == 0) {
    return;
  }
  const auto n = static_cast<double>(out.rounding_elements);
  const double mean = total_of(sums.perfect) / n;
  out.rounding_ratio = 12 * total_of(sums.ratio) / n;
  out.rounding_ratio_perfect = 12 * mean;
  out.rounding_sd = 12 * std::sqrt(std::max(0.0, total_of(sums.perfect2) / n - mean * mean));
  out.rounding_arith = total_of(sums.arith) / n;
}

/// How many elements of rows and columns that share an error are rounded together.
double agreeing(const CompareInput& input, const op::Port& shape) {
  const model::ErrorModel& model = *input.model;
  if (input.sample != nullptr && !input.sample->all()) {
    return 1;
  }
  const auto together = [&](bool share, const Lines& lines) {
    return share ? rounded_together(input.expected, lines, model.output, model.output_scale) : 1;
  };
  return std::max(together(model.columns_agree, {.length = shape.cols, .stride = 1}),
                  together(model.rows_agree, {.length = shape.rows, .stride = shape.cols}));
}

/// Needs the number of elements that are not RN(y).
void add_flips(const PassResult& pass, const CompareInput& input, const RowScan* scan, Statistics& out) {
  const FlipSums& sums = pass.sums.flips;
  const model::ErrorModel& model = *input.model;
  if (!out.flip_rate) {
    return;
  }
  out.residual_distance = pass.residuals.distance();
  out.flip_rate_predicted = total_of(sums.predicted) / static_cast<double>(out.elements);
  const op::Port shape = clustered_shape(*input.port);
  out.repeats = std::max(model.slope_copies, model.rounding_copies);
  if (out.exact_mismatch != 0) {
    const auto repeats = [&] { return input.known_repeats ? *input.known_repeats : repeats_of(input.expected); };
    out.repeats *= scan != nullptr ? scan->repeats() : std::max(repeats(), agreeing(input, shape));
  }
  const double shared = sharing_of(model, shape.rows, shape.cols);
  static_assert(std::tuple_size_v<decltype(out.flips)> == kFlipClasses);
  for (std::size_t c = 0; c < out.flips.size(); ++c) {
    Flips& flips = out.flips[c];
    flips = {kFlipWidths[c], total_of(sums.count[c]), total_of(sums.found[c]), total_of(sums.allowed[c])};
    const auto n = static_cast<double>(flips.count);
    flips.copies = std::min(n, out.repeats * (1 + (shared - 1) * ratio(flips.allowed, n)));
  }
  const double b = pass.slope_totals.b;
  out.slope_flip_se = ratio(std::sqrt(total_of(sums.spread)), b);
  out.slope_flip_drift = ratio(std::max(std::fabs(total_of(sums.drift)), std::fabs(total_of(sums.nearer))), b);
  out.slope_flip_step = ratio(largest_of(sums.step), b);
}

/// Of an FP32 output, whose equal results have equal errors: known where a slope is more than what independent errors leave.
void add_repeats(const CompareInput& input, const RowScan* scan, Statistics& out) {
  const double errors = std::fabs(out.slope) * std::sqrt(out.signal * static_cast<double>(out.counted()));
  if (!out.flip_rate && errors > 1) {
    out.repeats = scan != nullptr       ? scan->repeats()
                  : input.known_repeats ? *input.known_repeats
                                        : repeats_of(input.expected);
  }
}

/// How many elements of a block are rounded as one: rows may hardly differ. model.rounding_copies, which is for the worst case,
/// counts where the scatter of rows does not show that.
double repeats_of_rows(const CompareInput& input) {
  const model::ErrorModel& model = *input.model;
  const op::Port shape = clustered_shape(*input.port);
  const Lines columns{.length = shape.rows, .stride = shape.cols};
  const double copies = model.scatter_shows ? model.slope_copies : std::max(model.slope_copies, model.rounding_copies);
  return std::max(1.0, copies) *
         std::max({repeats_of(input.expected), agreeing(input, shape),
                   rounded_together(input.expected, columns, model.output, model.output_scale)});
}

void add_lattices(const LatticeSums& sums, Statistics& out) {
  static_assert(std::tuple_size_v<decltype(out.lattices)> == kLattices);
  for (std::size_t l = 0; l < out.lattices.size(); ++l) {
    out.lattices[l] = {kLatticeBits[l], total_of(sums.count[l]), total_of(sums.found[l]), total_of(sums.expected[l])};
  }
}

/// `specials` of the mismatches are among the elements that were removed.
Opinion opinion_of(const PredicateSums& sums, std::uint64_t specials = 0) {
  return {total_of(sums.mismatches) + specials, specials != 0 ? kInfinity : sums.max_excess};
}

void add_opinions(const PassResult& pass, Statistics& out) {
  out.torch_allclose = opinion_of(pass.sums.torch);
  out.numpy_allclose = opinion_of(pass.sums.numpy);
  out.te_compare = opinion_of(pass.sums.te);
}

void add_worst(const WorstList& list, const CompareInput& input, Statistics& out) {
  for (int i = 0; i < list.count && out.worst.size() < kWorst; ++i) {
    Worst worst{.index = list.position[i], .got = list.got[i], .expected = list.expected[i]};
    worst.over_bound = list.over_bound[i];
    worst.got_bits = bits_at(input, worst.index);
    worst.ulps = std::abs(worst.got - worst.expected) / core::ulp(worst.expected, input.port->dtype);
    out.worst.push_back(worst);
  }
}

/// Needs the norms.
double effective_bits(const TermSums& sums, const CompareInput& input, const Statistics& out) {
  constexpr double kRounding = 0.425;  // rms error of one rounding to p bits over 2^-p and the rms of the values
  // The rounding of a shorter output is relative to y, not to the terms.
  const bool is_product = input.model->terms && input.port->dtype == core::Dtype::fp32;
  if (const std::uint64_t scaled = total_of(sums.scaled); is_product && scaled > 0) {
    const double rho = std::sqrt(total_of(sums.rho2) / static_cast<double>(scaled));
    return -std::log2(rho / (kRounding * std::sqrt(input.model->rounded_operands)));
  }
  const bool out_of_range = is_product && out.arithmetic.rel_l2 != 0 &&
                            std::ranges::any_of(input.deviation, [](float deviation) { return deviation > 0; });
  return out_of_range ? std::numeric_limits<double>::quiet_NaN() : -std::log2(out.arithmetic.rel_l2 / kRounding);
}

std::optional<TermStatistics> terms_of(const TermSums& sums, const CompareInput& input, const Setup& setup) {
  if (!setup.model.terms) {
    return std::nullopt;
  }
  TermStatistics terms;
  terms.backward_error = sums.backward;
  terms.backward_error_scaled = terms.backward_error / (core::dtype_info(input.port->dtype).unit_roundoff *
                                                        std::sqrt(std::max(1.0, input.term_count)));
  terms.max_ulp = sums.ulps;
  static_assert(std::tuple_size_v<decltype(terms.condition_histogram)> == kConditions + 1);
  std::uint64_t above = total_of(sums.conditioned);
  for (std::size_t c = 0; c < kConditions; ++c) {
    const std::uint64_t larger = total_of(sums.condition[c]);
    terms.condition_histogram[c] = above - larger;
    above = larger;
  }
  terms.condition_histogram[kConditions] = above;
  return terms;
}

/// True if the same result is expected everywhere: one value, values that are all stored as the same number, or zeros, whatever
/// NaN and infinities are among them: no factor changes those.
bool is_constant(const CompareInput& input) {
  const std::span<const double> values = input.expected;
  if (values.size() < 2) {
    return false;
  }
  if (std::ranges::all_of(values, [first = values.front()](double y) { return y == first; })) {
    return true;
  }
  if (std::ranges::all_of(values, [](double y) { return y == 0 || !std::isfinite(y); })) {
    return std::ranges::find(values, 0.0) != values.end();
  }
  const core::DtypeInfo& format = core::dtype_info(input.port->dtype);
  const core::Overflow overflow = format.storage_bytes == 1 ? core::Overflow::saturate : core::Overflow::ieee;
  const auto stored = [&](double y) {
    return core::round_to(y * input.model->output_scale, input.port->dtype, overflow);
  };
  const double first = stored(values.front());
  return std::ranges::all_of(values, [&](double y) { return stored(y) == first; });
}

void add_ulps(const PassResult& pass, bool narrow, Statistics& out) {
  const UlpSums& sums = pass.sums.ulps;
  const std::uint64_t neutral = pass.specials.padding + pass.specials.removed;
  out.ulp_histogram = pass.ulps;
  out.ulp_histogram[0] -= neutral;
  out.zeros_got = total_of(sums.zeros) - neutral;
  out.exact_mismatch = total_of(sums.inexact) + pass.specials.inexact;
  out.max_ulp = largest_of(sums.max);
  if (narrow && out.elements != 0) {
    out.flip_rate = static_cast<double>(out.exact_mismatch) / static_cast<double>(out.elements);
  }
  out.mean_ulp = ratio(total_of(sums.sum), static_cast<double>(out.finite));
}

/// The bin of |z| for each of z^2, whose lower edges are edges of |z|: 32 per octave, so multiples of 1/2 up to 4 are exact.
std::array<std::uint8_t, kSpreadBins> bins_of_spread() {
  constexpr std::uint8_t kWide = 8;  // from here on one bin for [4, 8), one for the rest
  std::array<std::uint8_t, kSpreadBins> bins{};
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    const auto edge = static_cast<std::uint64_t>(bin + ((1023 - 16) << 5)) << 47;
    const double z = bin == 0 ? 0 : std::sqrt(std::bit_cast<double>(edge));
    bins[bin] = z < 4 ? static_cast<std::uint8_t>(2 * z) : z < 8 ? kWide : kWide + 1;
  }
  return bins;
}

void add_spread(const PassResult& pass, Statistics& out) {
  static const std::array<std::uint8_t, kSpreadBins> bins =
      bins_of_spread();  // 2048 roots, for every fake of a certificate
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    out.z_histogram[bins[bin]] += pass.spread[bin];
  }
  out.z_histogram[0] -= pass.specials.padding + pass.specials.removed;
}

void add_gates(const PassResult& pass, Statistics& out) {
  const GateSums& sums = pass.sums.gates;
  out.max_over_bound = pass.sums.worst.count == 0 ? 0 : pass.sums.worst.over_bound[0];
  out.z_rms = std::sqrt(ratio(total_of(sums.z2), static_cast<double>(out.counted())));
  out.z_max = std::sqrt(largest_of(sums.z2_max));
  out.z_q999 = quantile999(pass, out.counted(), out.z_max);
  out.slope = pass.slope;
  out.slope_se = pass.slope_error;
  out.slope_predicted_se = pass.slope_predicted;
  out.slope_clusters = pass.slope_clusters;
  out.signal = ratio(pass.slope_totals.b, static_cast<double>(out.counted()));
  out.coherence = ratio(total_of(sums.coherence), pass.slope_totals.b);
  out.addend = std::sqrt(ratio(total_of(sums.addends), pass.slope_totals.b));
}

/// Finite elements of which something other than zero is expected.
double nonzero_of(const CompareInput& input, const RowScan* scan, const Statistics& out) {
  const auto zeros = out.zeros_got == 0 ? 0
                     : scan != nullptr  ? static_cast<std::int64_t>(scan->zeros())
                                        : std::ranges::count(input.expected, 0.0);
  return std::max(0.0, static_cast<double>(out.finite) - static_cast<double>(zeros));
}

double spread_ulps(const ErrorSums& sums, double nonzero, core::Dtype dtype) {
  const double mean = ratio(total_of(sums.y), nonzero), square = ratio(total_of(sums.y2), nonzero);
  return std::sqrt(std::max(0.0, square - mean * mean)) / core::ulp(std::sqrt(square), dtype);
}

}  // namespace

Statistics compare(const CompareInput& given) {
  validate(given);
  CompareInput input = given;
  if (!given.unrounded.empty() && given.unrounded.data() == given.expected.data()) {
    input.unrounded = {};  // the same array: no need to compute its norms twice
    input.unrounded_is_expected = true;
  }
  const Setup setup = make_setup(input);
  std::optional<RowScan> rows;
  RowScan* const scan = input.source == nullptr ? nullptr : &rows.emplace(input);
  std::optional<PassResult> exact = has_exact_pass(input, setup) ? run_exact_pass(input, setup, scan) : std::nullopt;
  const bool is_exact = exact.has_value();
  if (scan != nullptr && setup.exact && !is_exact) {
    throw NeedsAllRows();
  }
  const PassResult pass = is_exact ? *std::move(exact) : run_pass(input, setup, scan);
  if (scan != nullptr &&
      (!scan->varies() || is_undetermined_anywhere(input, setup, scan->largest(), scan->largest_bound()))) {
    throw NeedsAllRows();
  }
  Statistics out;
  out.bits_hold = is_exact;
  out.elements = compared_elements(input);
  out.finite = out.elements - pass.specials.removed;
  out.nonfinite_mismatch = pass.specials.mismatches;
  out.unknown = pass.specials.unknown;
  out.undetermined = pass.specials.undetermined;
  out.order_dependent = pass.specials.order_dependent;
  out.outside = pass.specials.outside;
  out.left_out = pass.specials.left_out;
  out.unsampled = static_cast<std::uint64_t>(input.port->elements()) - out.elements;
  out.poison = pass.specials.poison;
  out.expected_constant = scan == nullptr && is_constant(input);
  out.copies = copies_of(input);
  const bool has_total = input.source != nullptr ? input.source->has_unrounded() : !input.unrounded.empty();
  const ErrorSums& errors = pass.sums.arithmetic;
  out.arithmetic = norms_of(errors, out.finite);
  out.total = input.unrounded_is_expected ? out.arithmetic
              : has_total                 ? norms_of(pass.sums.total, out.finite)
                                          : ErrorNorms{};
  out.rms_expected = std::sqrt(ratio(total_of(errors.y2), static_cast<double>(out.finite)));
  out.intercept = ratio(out.arithmetic.mean_signed, out.rms_expected);
  out.toward_zero =
      ratio(static_cast<double>(total_of(errors.toward_zero)), static_cast<double>(total_of(errors.nonzero)));
  out.effective_bits = effective_bits(pass.sums.terms, input, out);
  out.terms = terms_of(pass.sums.terms, input, setup);
  out.max_ulp_at_rms = ratio(out.arithmetic.max_abs, core::ulp(out.rms_expected, input.port->dtype));
  add_ulps(pass, setup.format.narrow && !setup.format.integer, out);
  if (!is_exact) {
    out.spread_ulps = spread_ulps(errors, nonzero_of(input, scan, out), input.port->dtype);
  }
  add_gates(pass, out);
  add_spread(pass, out);
  out.groups = pass.groups;
  add_rounding(pass.sums.rounding, out);
  add_flips(pass, input, scan, out);
  add_repeats(input, scan, out);
  if (!input.row_slopes.empty()) {
    out.block = block_slope(input, setup, repeats_of_rows(input));
  }
  add_lattices(pass.sums.lattice, out);
  add_opinions(pass, out);
  if (input.have_allclose) {
    out.plan_allclose = opinion_of(pass.sums.plan, pass.specials.plan);
    out.plan_limit_over_bound = pass.sums.plan_over_bound;
    out.plan_atol_over_ulp = input.atol / core::ulp(out.rms_expected, input.port->dtype);
  }
  add_worst(pass.specials.worst, input, out);
  add_worst(pass.sums.worst, input, out);
  return out;
}

}  // namespace numcheck::metric
