#include "tolerance/attention_bwd_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_layout.hpp"
#include "tolerance/attention_bwd_rounding.hpp"
#include "tolerance/attention_products.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {
namespace {

using core::Dtype;

/// From here on a bound says nothing.
constexpr double kUndetermined = 1e38;

double square(double x) {
  return x * x;
}

/// The format to which what an output is a sum of is rounded before it is multiplied.
Dtype rounded_format(const model::ModelRequest& request, const AttentionProducts& products, std::string_view port) {
  return products.scaled && port != "dv" ? request.mode->second : products.format;
}

/// What all rows of an output have in common.
struct Common {
  AttentionProducts products;
  double factor;   ///< |scale|, where the output has it
  double width;    ///< channels of the other factor
  double steps;    ///< d_v + 4
  double unit;     ///< u_P
  double stored;   ///< the same, TF32's included
  double lost;     ///< half the spacing of subnormals of its format
  double operand;  ///< variance of the rounding of an operand
  SumError scores, values;
  bool of_values;  ///< dv: no gradients of weights
  bool drops;      ///< elements of dq and dk have kDropped

  Common(const model::ModelRequest& request, const op::AttentionParams& p, std::string_view port)
      : products(request),
        factor(port == "dv" || (port == "dbias" && p.bias != "pre_scale") ? 1 : std::fabs(p.factor())),
        width(static_cast<double>(port == "dv" ? p.value_channels() : p.d)),
        steps(static_cast<double>(p.value_channels()) + 4),
        unit(products.rounds_weights() ? core::dtype_info(rounded_format(request, products, port)).unit_roundoff : 0),
        stored(products.tf32_unit() + unit),
        lost(products.rounds_weights() && !products.scaled ? core::dtype_info(products.format).min_subnormal / 2 : 0),
        operand(kRoundVariance * square(products.tf32_unit())),
        scores(products.sum(p.d)),
        values(products.sum(p.value_channels())),
        of_values(port == "dv"),
        drops(p.has_dropout() && (port == "dq" || port == "dk")) {
    values.bound += p.has_dropout() ? 2 * kUnit32 : 0;
    values.value += p.has_dropout() ? 4 * kRoundVariance * kUnit32 * kUnit32 : 0;
  }

  [[nodiscard]] double bound() const { return std::max(scores.bound, values.bound) + products.scale_steps() * kUnit32; }
  /// u, enlarged where scales are multiplied: D has at least four roundings without them.
  [[nodiscard]] double arithmetic_unit() const { return (1 + products.scale_steps() / 4) * kUnit32; }
};

/// One row: what its elements have in common.
class Row {
 public:
  Row(const Common& common, const GradientRounding& early, const GradientRow& facts)
      : common_(common), early_(early), facts_(facts), terms_(fact(GradientFact::terms)) {
    constexpr double u = kUnit32;
    const double delta =
        common.bound() * fact(GradientFact::largest_product) + u * fact(GradientFact::largest_argument);
    growth_ = std::exp(delta);
    const double z = common.scores.second * fact(GradientFact::score_second) +
                     common.scores.value * fact(GradientFact::score_square) +
                     u * u * (fact(GradientFact::argument_square) + 3);
    weights_ = z * std::exp(2 * z);
    spread_ = common.of_values ? 0
                               : (common.drops ? 0 : common.values.second * fact(GradientFact::gradient_second)) +
                                     common.values.value * fact(GradientFact::gradient_square) +
                                     u * u * fact(GradientFact::dot_variance);
    stored_ = early.row(facts, common.factor, growth_);
    flushed_ = kFlush * std::max(1.0, common.factor) * (1 + fact(GradientFact::largest_gradient)) + stored_.lost;
  }

  [[nodiscard]] bool is_empty() const { return terms_ == 0; }

  [[nodiscard]] GradientError gradient(double y, double rho, double squares, double mean, double parts,
                                       double dropped) const {
    constexpr double u = kUnit32;
    const SumError sum = common_.products.sum(static_cast<std::int64_t>(terms_));
    const double all = rho * fact(GradientFact::weight);  // at least the sum of magnitudes
    const double relative = common_.unit + sum.bound + (terms_ + 16 + common_.products.scale_steps()) * u;
    const double carried = rho * carried_error();
    const double lost = common_.lost * std::max(1.0, common_.factor) + fact(GradientFact::spacing) / 2;
    const double length = fact(GradientFact::length);
    const SumError values = common_.of_values ? SumError() : common_.values;
    const double of_row = common_.operand * fact(GradientFact::own_second) +
                          values.common * square(fact(GradientFact::own_dot)) +
                          u * u * fact(GradientFact::own_dot_variance);
    const double of_value =
        sum.value + values.common + common_.operand * fact(GradientFact::score_common) +
        (common_.scores.common + 2 * kRoundVariance * u * u) * square(fact(GradientFact::score_mean)) +
        2 * kRoundVariance * square(u * fact(GradientFact::own_statistic));
    const double of_shift = common_.stored == 0 ? 0 : square(fact(GradientFact::shift) * y);
    GradientError e;
    e.bound = relative * all + (1 + relative) * (carried + rho * stored_.bound) +
              (lost + flushed_) * std::sqrt(terms_ * length) + terms_ * kFlush;
    e.variance =
        squares * (kRoundVariance * (square(common_.unit) + 4 * u * u) + sum.second + weights_ + values.value) +
        square(rho) * spread_ + common_.values.second * square(dropped) + square(mean) * of_row + square(y) * of_value +
        std::max(0.0, of_shift - kRoundVariance * square(common_.stored) * squares) +
        (all == 0 ? 0 : sum.coherent * square(y * y / all)) +
        std::min(squares, square(lost + flushed_) / 3 * length / common_.width) + squares * stored_.weights +
        square(rho) * stored_.spread + square(y) * stored_.common;
    return sum_of(e, early_.parts(facts_, rho, parts));
  }

  /// Of the largest |scale dt| of the whole output, dq: p (|w| a + b) is at most G for each pair, p |w| at most R.
  [[nodiscard]] GradientError largest(double of_all) const {
    const double of_row = std::min(of_all, common_.factor * fact(GradientFact::weight));
    return {common_.factor * carried_error() + kFlush,
            square(of_row) * weights_ +
                square(common_.factor) * (spread_ + common_.values.common * fact(GradientFact::gradient_square))};
  }

  [[nodiscard]] GradientError bias(double y, double rho, double squares, double saturation) const {
    constexpr double u = kUnit32;
    const double g = common_.bound();
    const double argument =
        g * fact(GradientFact::largest_product) + u * (fact(GradientFact::largest_argument) + terms_ + 4);
    GradientError e;
    e.bound = std::sqrt(terms_) * growth_ *
                  (std::sqrt(squares) * argument + rho * (g + common_.steps * u) + 8 * u * saturation) +
              terms_ * flushed_;
    e.variance = squares * (weights_ + common_.scores.common * fact(GradientFact::score_square) + common_.values.value +
                            kRoundVariance * (terms_ / 6 + 4) * u * u) +
                 square(rho) * (spread_ + common_.values.common * fact(GradientFact::gradient_square)) +
                 kRoundVariance / 3 * terms_ * square(u * y) + square(flushed_) + 64.0 / 3 * square(u * saturation);
    return sum_of(e, early_.bias(stored_, facts_, y, rho, squares, saturation));
  }

 private:
  [[nodiscard]] double fact(GradientFact which) const { return facts_[which]; }
  /// c (g G + u U)
  [[nodiscard]] double carried_error() const {
    return growth_ * (common_.bound() * fact(GradientFact::products) +
                      common_.arithmetic_unit() * fact(GradientFact::arithmetic));
  }
  static GradientError sum_of(const GradientError& a, const GradientError& b) {
    return {a.bound + b.bound, a.variance + b.variance};
  }

  const Common& common_;
  const GradientRounding& early_;
  GradientRow facts_;
  GradientRounding::Row stored_;
  double terms_;
  double growth_ = 1;   ///< c
  double weights_ = 0;  ///< variance of a weight's relative error
  double spread_ = 0;   ///< variance of dp - D per rho^2
  double flushed_ = 0;  ///< per pair, what FP32 may flush to zero
};

const op::OutputValues& output_named(const op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  if (found == values.outputs.end()) {
    throw core::InternalError("attention_bwd has no output " + std::string(port));
  }
  return *found;
}

float upward(double x) {
  const auto nearest = static_cast<float>(x);
  return static_cast<double>(nearest) < x ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
}

/// Where the rows of an output with facts are: heads of a sequence, positions of a head, channels of a position.
struct Shape {
  op::Side side;
  std::int64_t batches, heads, length, channels;
  Shape(const op::AttentionParams& p, std::string_view port)
      : side(port == "dk" || port == "dv" ? op::Side::keys : op::Side::queries),
        batches(port == "dbias" ? 1 : p.batches),
        heads(op::heads_of(p, side)),
        length(op::longest(p, side)),
        channels(port == "dbias" ? p.sk
                 : port == "dv"  ? p.value_channels()
                                 : p.d) {}
};

/// Of the largest gradient of a scaled product.
GradientError largest_change(const model::ModelRequest& request, const op::AttentionParams& p,
                             const op::Values& values) {
  const op::OutputValues& dq = output_named(values, "dq");
  const double of_all = output_named(values, "dp_amax").value[0];
  const GradientRounding early(request, p, "dq", dq);
  const Common common(request, p, "dq");
  GradientError largest;
  for (std::size_t row = 0; row < dq.row_facts.front().size(); ++row) {
    const Row of_query(common, early, {dq, row});
    if (!of_query.is_empty()) {
      const GradientError e = of_query.largest(of_all);
      largest = {std::fmax(largest.bound, e.bound), std::fmax(largest.variance, e.variance)};
    }
  }
  return largest;
}

/// By how much an FP8 output may be too large or too small as a whole: what its rows have in common of M, and the root mean
/// square of their mean scores times the slope by which scores of one sign are all truncated.
double fp8_shared_slope(const Common& common, const op::OutputValues& output) {
  double squares = 0, shift = 0, rows = 0;
  for (std::size_t index = 0; index < output.row_facts.front().size(); ++index) {
    const GradientRow facts(output, index);
    const double mean = facts[GradientFact::score_mean];
    if (facts[GradientFact::terms] > 0 && std::isfinite(mean) && std::isfinite(facts[GradientFact::shift])) {
      squares += square(mean);
      shift += facts[GradientFact::shift];
      ++rows;
    }
  }
  return rows == 0 ? 0 : std::sqrt(common.scores.common * squares / rows) + std::fabs(shift) / rows;
}

/// The output whose errors judge a port: dq for dq_amax.
std::string judged_output(std::string_view port) {
  constexpr std::string_view kAmax = "_amax";
  return std::string(port.ends_with(kAmax) && port != "dp_amax" ? port.substr(0, port.size() - kAmax.size()) : port);
}

}  // namespace

void attention_bwd_error(const model::ModelRequest& request, const op::Values& values, std::string_view port,
                         std::span<float> bound, std::span<float> variance) {
  const op::OutputValues& judged = output_named(values, port);
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  const GradientRounding early(request, p, port, port == "dp_amax" ? output_named(values, "dq") : judged);
  if (port == "dsoftmax_offset") {
    for (std::size_t head = 0; head < bound.size(); ++head) {
      const GradientError e = early.offset(judged, head);
      bound[head] = upward(static_cast<double>(judged.magnitude[head]) + e.bound);
      variance[head] = upward(static_cast<double>(judged.second_moment[head]) + e.variance);
    }
    return;
  }
  if (port == "dp_amax") {
    const GradientError e = largest_change(request, p, values);
    bound[0] = e.bound < kUndetermined ? upward(e.bound * (1 + 0x1p-20)) : std::numeric_limits<float>::max();
    variance[0] =
        e.bound < kUndetermined ? upward(std::min(e.variance, kUndetermined)) : std::numeric_limits<float>::infinity();
    return;
  }
  const Common common(request, p, port);
  const Shape shape(p, port);
  const bool bias = port == "dbias";
  const auto element_fact = [&judged](std::size_t which, std::size_t at) {
    const bool has = judged.row_facts.size() > which && !judged.row_facts[which].empty();
    return has ? static_cast<double>(judged.row_facts[which][at]) : 0.0;
  };
  const std::int64_t rows = shape.batches * shape.heads * shape.length;
  for (const op::OutputValues::Range& unused : judged.outside) {
    for (auto at = static_cast<std::size_t>(unused.begin); at < static_cast<std::size_t>(unused.end); ++at) {
      bound[at] = std::numeric_limits<float>::max();
      variance[at] = std::numeric_limits<float>::infinity();
    }
  }
  core::parallel_chunks(static_cast<std::size_t>(rows), 64, [&](std::size_t, std::size_t first, std::size_t end) {
    for (std::size_t r = first; r < end; ++r) {
      const auto position = static_cast<std::int64_t>(r) % shape.length;
      const auto head = static_cast<std::int64_t>(r) / shape.length;
      if (!bias && position >= op::positions(p, shape.side, head / shape.heads)) {
        continue;
      }
      const op::HeadPlace place =
          bias ? op::HeadPlace{head * shape.length * shape.channels, shape.channels}
               : op::head_place(p, shape.side, head / shape.heads, head % shape.heads, shape.channels);
      const Row row(common, early, {judged, r});
      for (std::int64_t c = 0; c < shape.channels; ++c) {
        const auto at = static_cast<std::size_t>(place.first + position * place.stride + c);
        const double y = judged.value[at], rho = static_cast<double>(judged.magnitude[at]);
        const double squares = static_cast<double>(judged.second_moment[at]);
        const GradientError e = row.is_empty() ? GradientError()
                                : bias         ? row.bias(y, rho, squares, element_fact(kSaturation, at))
                                               : row.gradient(y, rho, squares, element_fact(kMean, at),
                                                              element_fact(kParts, at), element_fact(kDropped, at));
        const bool known = e.bound < kUndetermined && !std::isnan(e.variance);
        bound[at] = known ? upward(e.bound * (1 + 0x1p-20)) : std::numeric_limits<float>::max();  // facts are FP32
        variance[at] = known ? upward(std::min(e.variance, kUndetermined)) : std::numeric_limits<float>::infinity();
      }
    }
  });
}

model::ErrorModel attention_bwd_error_model(const model::ModelRequest& request, std::string_view of) {
  const std::string port = judged_output(of);
  constexpr double kKappa = 2;
  constexpr double u = kUnit32;
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  const Common common(request, p, port);
  const std::int64_t sharing = p.heads / p.key_heads();
  const std::int64_t terms = port == "dq"                   ? p.sk
                             : port == "dk" || port == "dv" ? p.sq * sharing
                             : port == "dbias"              ? p.batches
                                                            : p.batches * p.sq;
  model::ErrorModel model;
  model.output = request.output;
  model.output_scale = request.output_scale;
  model.bound_magnitude = 1;
  model.var_second = 1;
  model.kappa = kKappa;
  model.overflow_magnitude = kUndetermined;
  // Scores that are all off by the same part change all weights alike, because lse is an input.
  const double largest = std::fabs(p.factor()) * static_cast<double>(p.d) * request.first_max * request.first_scale *
                         request.second_max * request.second_scale;
  const SumError& scores = common.scores;
  const bool scaled = common.products.scaled;  // the slope for the largest score says too little
  model.slope_slack =
      (static_cast<double>(terms) + 16) * u + largest * ((scaled ? 0 : std::sqrt(scores.common)) + 3 * u);
  if (request.output_scale != 1) {
    model.bound_value = u;
    model.var_value = u * u / 3;
  }
  model.reduction = static_cast<double>(terms);
  model.columns_agree = port != "dsoftmax_offset";
  model.one_error = request.constant_inputs;
  model.lost_alike = true;
  model.source =
      fmt::format("attention_bwd/{} on {}, {}: d={}, sums of {}", request.mode->name,
                  common.products.chain || port == "dsoftmax_offset" ? "FP32 fused multiply-adds"
                                                                     : common.products.arithmetic.description,
                  port, p.d, terms);
  const model::AttentionRounding rounding = roundings_of(request.rounding, port, p);
  if (rounding != model::AttentionRounding()) {
    model.source += "; " + describe(rounding, core::dtype_info(request.mode->first).name);
    model.shared_slope = [request, p, port](const op::Values& values) {
      const op::OutputValues& judged = output_named(values, port);
      return GradientRounding(request, p, port, judged).shared_slope(judged);
    };
  }
  if (scaled && port != "dp_amax" && port != "dsoftmax_offset") {
    model.shared_slope = [request, p, port](const op::Values& values) {
      return fp8_shared_slope(Common(request, p, port), output_named(values, port));
    };
  }
  model.element_errors = [request, port](const op::Values& values, std::span<float> bound, std::span<float> variance) {
    attention_bwd_error(request, values, port, bound, variance);
  };
  return model;
}

}  // namespace numcheck::tolerance
