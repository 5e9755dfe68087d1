#include "tolerance/attention_bwd_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tolerance/attention_products.hpp"
#include "tolerance/output_reduction.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {
namespace {

/// A bound that is e^80 times as large says nothing.
constexpr double kSteepest = 80;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double square(double x) {
  return x * x;
}

/// Roundings on the way from dp to what an output is made of.
double gradient_steps(const op::AttentionParams& p, std::string_view port) {
  const bool through_cap = p.softcap != 0 && (port != "dbias" || p.bias == "pre_scale");
  return 1 + (through_cap ? 3 : 0) + (p.bias == "pre_scale" ? 1 : 0);
}

}  // namespace

GradientRounding::GradientRounding(const model::ModelRequest& request, const op::AttentionParams& p,
                                   std::string_view port, const op::OutputValues& output)
    : what_(roundings_of(request.rounding, port, p)),
      scores_(what_, request.mode->first, p, has_few_values(request)),
      unit_(core::dtype_info(request.mode->first).unit_roundoff),
      steps_((what_.weights && port != "dv" ? 1 : 0) + (what_.dropped_weights && port == "dv" ? 1 : 0) +
             (what_.score_gradients ? gradient_steps(p, port) : 0)),
      slope_steps_(what_.scores && p.softcap != 0 ? (p.bias == "pre_scale" ? 5 : 3) : 0),
      weight_steps_((what_.weights ? 1 : 0) + (what_.dropped_weights && port == "dv" ? 1 : 0)),
      dp_steps_(!what_.score_gradients  ? 0
                : what_.dropped_weights ? 2
                                        : 1),
      kept_(what_.dropped_weights ? p.keep_scale() : 0),
      subnormal_(core::dtype_info(request.mode->first).min_subnormal / 2),
      largest_(core::dtype_info(request.mode->first).max_finite),
      descale_(std::fabs(1 / p.factor())),
      cap_(p.softcap == 0 ? 0 : 1 / p.softcap),
      has_sink_(p.softmax != "vanilla"),
      shared_steps_(has_sink_                        ? scores_.inner_steps()
                    : port != "dq" && p.softcap != 0 ? 3
                                                     : 0),
      sharing_(static_cast<double>(p.heads) / static_cast<double>(p.key_heads())),
      largest_step_(p.keep_scale() * std::max(1.0, std::fabs(p.softcap))),
      of_queries_(port == "dq"),
      of_dropped_bias_(port == "dbias" && what_.dropped_weights),
      of_offset_(port == "dsoftmax_offset"),
      keeps_alike_(has_few_values(request) || (what_.dropped_weights && has_one_sign(request))),
      is_uneven_(output.row_facts.size() > kWeightRatio && !output.row_facts[kWeightRatio].empty()),
      weights_alike_(weight_steps_ > 0 && (has_few_values(request) || has_heavy_tails(request))) {
  if (!of_offset_) {
    for (const float score : output.row_facts[static_cast<std::size_t>(GradientFact::largest_score)].span()) {
      largest_score_ = std::max(largest_score_, static_cast<double>(score));
    }
  }
}

double GradientRounding::score_variance(const GradientRow& facts) const {
  const double statistic = of_queries_ ? 0 : facts[GradientFact::statistic_square];
  // A pair with p near 1 has little error, since lse has its score's, too. With dropout that pair may weigh most in a row,
  // which says nothing of the row's other elements.
  const double product = facts[GradientFact::score_square], least = of_dropped_bias_ ? product : -kInfinity;
  return std::max(0.0, scores_.variance({product, std::max(least, facts[GradientFact::inner_square]),
                                         std::max(least, facts[GradientFact::scored_square])}) +
                           scores_.variance({statistic, statistic, statistic}));
}

double GradientRounding::alike_weights(const GradientRow& facts) const {
  if (weight_steps_ == 0) {
    return 0;
  }
  const double ulps =
      std::sqrt(std::max({0.0, facts[GradientFact::score_square], facts[GradientFact::scored_square]})) / (2 * unit_);
  const double share = weights_alike_ ? 1 : std::exp(-square(2 * std::numbers::pi * ulps));
  return weight_steps_ * unit_ * std::max(share, facts[GradientFact::alike_scores]);
}

double GradientRounding::alike_scores(const GradientRow& facts) const {
  if (!what_.scores) {
    return 0;
  }
  const double spread = facts[GradientFact::score_spread], inner = std::max(0.0, facts[GradientFact::inner_square]);
  const auto shared = [this](double differ) {
    return differ == 0 ? 1 : std::min(1.0, unit_ / (std::sqrt(std::numbers::pi) * differ));
  };
  const double left = of_queries_ ? square(facts[GradientFact::free_share]) : 1;
  double variance = kRoundVariance * square(unit_) * shared_steps_ * shared(spread);
  if (has_sink_ && cap_ != 0) {  // tanh x - x = -x^3 / 3 is rounded alike where it differs by less than an ulp
    const double x2 = inner * square(cap_);
    variance += std::min(kRoundVariance * square(unit_), square(x2 / 3)) * shared(x2 * spread);
  }
  return variance * inner * left;
}

double GradientRounding::alike_changes(const GradientRow& facts) const {
  // Around a power of two, below which the format is twice as fine, roundings of numbers that differ by R ulps are off by
  // 0.025 / R ulps in the mean (Euler and Maclaurin, of a normal density).
  constexpr double kOffset = 0.05;
  const double ulps = facts[GradientFact::gradient_spread] / (2 * unit_);
  const double offset = std::isfinite(ulps) && ulps > kOffset ? kOffset / ulps : 1;
  const double alike = facts[GradientFact::alike_gradients];
  return dp_steps_ * unit_ * (keeps_alike_ ? 1 : std::max(alike, offset));
}

double GradientRounding::alike_statistics(const GradientRow& facts) const {
  if (of_offset_ || scores_.is_none()) {
    return 0;
  }
  const double alike = alike_scores(facts);
  if (of_queries_) {
    return std::sqrt(alike);
  }
  const double statistic = facts[GradientFact::statistic_square];
  if (!std::isfinite(statistic)) {
    return kInfinity;  // and not 0 times that
  }
  const double queries = is_uneven_ ? 1 : std::max(1.0, facts[GradientFact::terms]);
  return std::sqrt(scores_.variance({statistic, statistic, statistic}) / queries + alike);
}

double GradientRounding::slope_variance() const {
  return kRoundVariance * 4 * slope_steps_ * square(unit_) + (what_.approximate_tanh ? 4 * square(kTanhError) / 3 : 0);
}

GradientRounding::Row GradientRounding::row(const GradientRow& facts, double factor, double growth) const {
  if (what_ == model::AttentionRounding()) {
    return {};
  }
  const double sink = what_.sink ? unit_ * facts[GradientFact::largest_sink] : 0;
  const double weight = std::min(kSteepest, 2 * scores_.bound(largest_score_) + sink);
  const double dp = dp_steps_ * unit_, dp2 = dp_steps_ * square(unit_), z = score_variance(facts);
  const double statistic = of_queries_ ? facts[GradientFact::statistic_square] : 0;
  Row row;
  row.unknown = scores_.may_exchange_keys(largest_score_) ||
                (what_.score_gradients && !(largest_step_ * facts[GradientFact::largest_change] < largest_));
  row.relative = std::expm1(weight) + steps_ * unit_;
  row.steep = growth * std::exp(weight);
  row.tanh = 2 * slope_steps_ * unit_ * (1 + facts[GradientFact::largest_score] * cap_) +
             (what_.approximate_tanh ? 2 * kTanhError : 0);
  row.bound = row.relative * facts[GradientFact::weight] +
              row.steep * (dp * facts[GradientFact::products] + row.tanh / 12 * facts[GradientFact::arithmetic]);
  row.scores = z * std::exp(std::min(2 * z, kSteepest));
  row.weights = kRoundVariance * (steps_ * square(unit_) + dp2) + square(sink) / 3;
  row.slopes = slope_variance() * facts[GradientFact::saturation];
  row.spread = kRoundVariance * dp2 * facts[GradientFact::gradient_square] + row.slopes;
  constexpr double kEverywhere =
      0.25;  // no more than kAttentionKappa deviations if every row has the largest such error
  row.common = square(sink) / 3 + scores_.variance({statistic, statistic, statistic}) +
               kEverywhere * square(alike_weights(facts)) + alike_scores(facts);
  row.dots = kEverywhere * square(alike_changes(facts) * facts[GradientFact::own_dot]);
  row.lost = lost(facts, factor);
  return row;
}

double GradientRounding::lost(const GradientRow& facts, double factor) const {
  return what_.weights || what_.score_gradients
             ? subnormal_ * std::max({1.0, factor, cap_}) *
                   (1 + steps_ + kept_ + (what_.weights ? facts[GradientFact::largest_gradient] : 0))
             : 0;
}

GradientError GradientRounding::bias(const Row& row, const GradientRow& facts, const BiasElement& element) const {
  const double rho = element.rho, squares = element.squares, saturation = element.saturation;
  const double dp = dp_steps_ * unit_, dp2 = dp_steps_ * square(unit_), terms = facts[GradientFact::terms];
  const double of_dp = square(rho) * facts[GradientFact::gradient_square] * element.spread_ratio;
  const double scored = squares == 0 ? 0 : square(element.scored) / squares;
  const double own = what_.scores ? scores_.variance({scored, scored, scored}) : 0;
  GradientError e{std::sqrt(terms) *
                      (std::sqrt(squares) * row.relative * row.steep + row.steep * (rho * dp + row.tanh * saturation)),
                  squares * std::max((row.scores + row.weights) * element.weight_ratio,
                                     own * std::exp(std::min(2 * own, kSteepest)) + row.weights) +
                      kRoundVariance * dp2 * of_dp + slope_variance() * square(saturation)};
  if (what_
          .dropped_weights) {  // dp = w + D of a kept weight: both mostly have the same sign, and dp^2 <= 2 (w^2 + D^2)
    e.variance += kRoundVariance * dp2 * (squares + of_dp);
  }
  if (what_.scaled_bias) {
    const double lost = std::max(subnormal_, kFlush) * descale_;  // cuDNN 9.19 flushes BF16's subnormals
    e.bound += unit_ * std::sqrt(terms * squares) + terms * lost;
    e.variance += kRoundVariance * square(unit_) * squares + terms * square(lost) / 3;
  }
  if (what_.bias_sum) {
    e.bound += terms * (unit_ * std::sqrt(terms * squares) + subnormal_);
    e.variance += kRoundVariance * square(unit_) * (squares / 2 + terms * (squares / 6 + square(element.y) / 3)) +
                  terms * square(subnormal_) / 3;
  }
  return sum_may_overflow(element, std::sqrt(terms * squares) + e.bound) ? GradientError{kInfinity, kInfinity} : e;
}

bool GradientRounding::sum_may_overflow(const BiasElement& element, double magnitudes) const {
  if (!what_.bias_sum && !what_.scaled_bias) {
    return false;
  }
  constexpr double kMargin = 1 + 0x1p-6;
  const double largest = what_.scaled_bias ? largest_ * std::min(1.0, descale_) : largest_;
  const bool is_infinite =
      std::fabs(element.y) > largest_ * kMargin;  // stays so unless another part has the other sign
  return magnitudes * kMargin > (is_infinite ? 2 : 1) * largest;
}

GradientError GradientRounding::parts(const GradientRow& facts, double rho, double parts) const {
  if (!what_.head_gradients) {
    return {};
  }
  constexpr double kMargin = 1 + 0x1p-6;  // of a part's own error
  if (parts * kMargin > largest_) {
    return {kInfinity, kInfinity};  // a head's part may overflow, and the sum may be infinite or NaN
  }
  const double lost = std::max(subnormal_, kFlush);  // cuDNN 9.14 and 9.19 add parts without BF16's subnormals
  return {unit_ * rho * facts[GradientFact::weight] + sharing_ * lost,
          kRoundVariance * square(unit_ * parts) + sharing_ * square(lost) / 3};
}

GradientError GradientRounding::offset(const op::OutputValues& output, std::size_t head, double alike) const {
  const auto fact = [&](OffsetFact which) { return read_fact(which, output, head); };
  const double sink = what_.sink ? unit_ * fact(OffsetFact::sink) : 0, y = output.value[head];
  const double weight = sink + scores_.bound(fact(OffsetFact::largest)), scores = fact(OffsetFact::scores);
  return {
      std::expm1(std::min(kSteepest, weight)) * fact(OffsetFact::sum),
      (square(sink) / 3 + alike) * (y * y + fact(OffsetFact::squares)) + scores_.variance({scores, scores, scores})};
}

double GradientRounding::shared_slope(const op::OutputValues& output) const {
  if (what_ == model::AttentionRounding()) {
    return 0;
  }
  if (of_offset_) {
    return kInfinity;
  }
  double largest = 0;
  for (std::size_t index = 0; index < output.row_facts.front().size(); ++index) {
    const GradientRow facts(output, index);
    largest = std::max(largest, (what_.sink ? unit_ * facts[GradientFact::largest_sink] : 0) + score_variance(facts));
  }
  return largest;
}

}  // namespace numcheck::tolerance
