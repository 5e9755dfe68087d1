#include "data/distribution.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "core/error.hpp"
#include "data/distribution_params.hpp"
#include "data/generators.hpp"

namespace numcheck::data {
namespace {

template <class P>
using Generate = void (*)(const P&, const core::StreamId&, std::uint64_t, std::span<double>);
template <class P>
using PatternOf = Pattern (*)(const P&, core::Dtype);

template <class P, Generate<P> generate_typed>
void generate_with(const op::Params& params, const core::StreamId& stream, std::uint64_t first, std::span<double> out,
                   const Geometry& /*geometry*/) {
  generate_typed(op::from_params<P>(params), stream, first, out);
}

/// The same pattern for all parameters and formats.
template <class P, Order order, bool one_sign>
Pattern always(const P& /*params*/, core::Dtype /*format*/) {
  return {order, one_sign ? 1.0 : 0.0};
}
template <class P>
constexpr PatternOf<P> kCancelling = &always<P, Order::random, false>;
/// Of both signs.
template <class P>
Pattern few_values_pattern(const P& /*params*/, core::Dtype /*format*/) {
  return {.order = Order::random, .coherence = 0, .few_values = true};
}
template <class P>
constexpr PatternOf<P> kFewValues = &few_values_pattern<P>;
template <class P>
constexpr PatternOf<P> kOneSign = &always<P, Order::random, true>;
template <class P>
constexpr PatternOf<P> kConstant = &always<P, Order::constant, true>;
template <class P>
constexpr PatternOf<P> kSignedRuns = &always<P, Order::signed_runs, false>;
template <class P>
constexpr PatternOf<P> kStructured = &always<P, Order::structured, false>;

template <class P, PatternOf<P> pattern_typed>
Pattern pattern_with(const op::Params& params, core::Dtype format) {
  return pattern_typed(op::from_params<P>(params), format);
}

template <class P, Generate<P> generate_typed, PatternOf<P> pattern_typed>
constexpr DistributionInfo row(std::string_view name, std::string_view doc) {
  return {name, doc, &op::fields_of<P>, &generate_with<P, generate_typed>, &pattern_with<P, pattern_typed>};
}

void generate_rows_with(const op::Params& params, const core::StreamId& stream, std::uint64_t first,
                        std::span<double> out, const Geometry& geometry) {
  generate_rows(op::from_params<RowsParams>(params), stream, first, out, geometry.cols);
}

void generate_activations_with(const op::Params& params, const core::StreamId& stream, std::uint64_t first,
                               std::span<double> out, const Geometry& geometry) {
  generate_activations(op::from_params<ActivationParams>(params), stream, first, out, geometry);
}

void generate_one_hot_with(const op::Params& /*params*/, const core::StreamId& /*stream*/, std::uint64_t first,
                           std::span<double> out, const Geometry& geometry) {
  generate_one_hot(first, out, geometry);
}

/// Two rows in three of "rows" have means far from zero; the elements of "one_hot" have one sign.
Pattern uneven_pattern(const op::Params& /*params*/, core::Dtype /*format*/) {
  return {Order::structured, 1};
}

constexpr std::array kDistributions = {
    row<NormalParams, generate_normal, kCancelling<NormalParams>>(
        "normal", "normal with mean 0: full mantissas, cancelling signs"),
    row<NoParams, generate_positive, kOneSign<NoParams>>("positive", "uniform in (0, 1]: for bias; hides precision"),
    row<UniformParams, generate_uniform, uniform_pattern>("uniform", "uniform between two limits"),
    row<ConstantParams, generate_constant, kConstant<ConstantParams>>("constant", "one value everywhere"),
    row<LargeMeanParams, generate_large_mean, large_mean_pattern>(
        "large_mean", "normal around a mean that is large relative to the spread"),
    row<LogUniformParams, generate_log_uniform, log_uniform_pattern>(
        "log_uniform", "2^x with x uniform: wide exponent range, all binades equally likely"),
    row<OutlierParams, generate_outliers, kCancelling<OutlierParams>>(
        "outliers", "standard normal with a share of scaled elements"),
    row<ExactParams, generate_integers, kFewValues<ExactParams>>("exact",
                                                                 "small integers that an op sums without rounding"),
    row<TieParams, generate_ties, kCancelling<TieParams>>(
        "ties", "values halfway between neighbours of a format, magnitudes 1/8 to 16"),
    row<SpecialParams, generate_specials, kCancelling<SpecialParams>>(
        "specials", "standard normal with a share of NaN, infinities, zeros, FP32 subnormals and extremes"),
    row<StructuredParams, generate_structured, kSignedRuns<StructuredParams>>(
        "structured", "magnitudes in [1/2, 1) whose sign flips every `period` elements, so that partial sums grow"),
    row<PatternParams, generate_patterns, kStructured<PatternParams>>(
        "patterns", "every number of a format, in the order of its bit patterns"),
    DistributionInfo{"rows",
                     "normal rows, each with its own spread 2^x and a mean of 0, 2^4 or 2^10 times that: for norms",
                     &op::fields_of<RowsParams>, &generate_rows_with, &uneven_pattern},
    row<NoParams, generate_signs, kFewValues<NoParams>>("signs", "1 and -1: every product of a sum counts alike"),
    DistributionInfo{"one_hot",
                     "a single 1 in each sum, from its end backwards and spread over it: which product is lost",
                     &op::fields_of<NoParams>, &generate_one_hot_with, &uneven_pattern},
    DistributionInfo{"activations",
                     "like a model's activations: correlated channels, some of them outliers, a mean that drifts along "
                     "the rows, and a first row that is an attention sink",
                     &op::fields_of<ActivationParams>, &generate_activations_with,
                     &pattern_with<ActivationParams, activation_pattern>},
};

const DistributionInfo& distribution_named(std::string_view name) {
  const DistributionInfo* info = find_distribution(name);
  if (info == nullptr) {
    throw core::InternalError("there is no distribution \"" + std::string(name) + "\"");
  }
  return *info;
}

/// The distribution's row; throws InternalError if the parameters are not those of that row.
const DistributionInfo& checked_row(const Distribution& distribution) {
  const DistributionInfo& info = distribution_named(distribution.name);
  const std::vector<op::Field>& fields = info.fields();
  bool fits = distribution.params.size() == fields.size();
  for (std::size_t i = 0; fits && i < fields.size(); ++i) {
    fits = distribution.params[i].index() == fields[i].fallback.index();
  }
  if (!fits) {
    throw core::InternalError("distribution \"" + distribution.name + "\" was given parameters of another one");
  }
  return info;
}

}  // namespace

std::span<const DistributionInfo> all_distributions() noexcept {
  return kDistributions;
}

const DistributionInfo* find_distribution(std::string_view name) noexcept {
  const auto found = std::find_if(kDistributions.begin(), kDistributions.end(),
                                  [&](const DistributionInfo& info) { return info.name == name; });
  return found == kDistributions.end() ? nullptr : &*found;
}

Distribution make_distribution(std::string_view name) {
  Distribution distribution{std::string(name), {}};
  for (const op::Field& field : distribution_named(name).fields()) {
    distribution.params.push_back(field.fallback);
  }
  return distribution;
}

Pattern pattern_of(const Distribution& distribution, core::Dtype format) {
  return checked_row(distribution).pattern(distribution.params, format);
}

void generate(const Distribution& distribution, const core::StreamId& stream, std::uint64_t first,
              std::span<double> out, const Geometry& geometry) {
  checked_row(distribution).generate(distribution.params, stream, first, out, geometry);
}

}  // namespace numcheck::data
