#include "tolerance/attention_max_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "core/error.hpp"
#include "op/attention_fwd.hpp"
#include "op/attention_layout.hpp"
#include "tolerance/attention_products.hpp"
#include "tolerance/attention_rounding.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::string_view kPort = "max_logit";

double square(double x) {
  return x * x;
}

const op::OutputValues& largest_scores(const op::Values& values) {
  const auto found = std::ranges::find(values.outputs, kPort, &op::OutputValues::port);
  if (found == values.outputs.end()) {
    throw core::InternalError("attention has no output max_logit");
  }
  return *found;
}

/// What the elements of a case have in common.
class MaxLogit {
 public:
  MaxLogit(const model::ModelRequest& request, const op::AttentionParams& p)
      : MaxLogit(request, p, AttentionProducts(request)) {}

  struct Error {
    double bound = 0;
    double variance = 0;
    double alike = 0;  ///< part of the variance that is a shift towards larger scores
  };
  [[nodiscard]] Error error(const op::OutputValues& output, std::size_t query) const {
    constexpr double u = kUnit32;
    const auto fact = [&](MaxLogitFact which) {
      return static_cast<double>(output.row_facts[static_cast<std::size_t>(which)][query]);
    };
    const double t = fact(MaxLogitFact::product), s2 = square(fact(MaxLogitFact::score));
    const double magnitude = fact(MaxLogitFact::magnitude), largest = fact(MaxLogitFact::largest);
    const double one_sign = magnitude == 0 ? 0 : std::min(1.0, square(t / magnitude));
    const double partial = ordered_ ? std::max(t, magnitude) : t;
    const double before = scores_.second * square(fact(MaxLogitFact::second)) + scores_.value * square(partial) +
                          (scores_.coherent * one_sign + alike_) * square(t);
    const double slope = slope_of_cap(fact(MaxLogitFact::capped) - 3 * std::sqrt(before));
    const double of_sum = std::min(square(slope) * before, square(2 * cap_));
    const double t2 = square(std::max(std::min(t, cap_), slope * t));
    const double inner = std::max(t2, s2);
    const double single = of_sum + 2 * u * u * (t2 + s2);
    const double rivals = 2 * std::log(std::max(1.0, fact(MaxLogitFact::rivals)));
    const double rounded = early_.variance({t2, inner, s2});
    const double stored = early_.is_none() ? 0 : fact(stored_upset_);
    const double upset = square(std::max(fact(upset_), stored));
    return {scores_.bound * fact(MaxLogitFact::products) + 16 * u * largest + early_.bound(largest) + lost_,
            std::max((single + rounded) * (1 + rivals), upset) + lost_variance_, (single + rounded) * rivals};
  }

 private:
  MaxLogit(const model::ModelRequest& request, const op::AttentionParams& p, const AttentionProducts& products)
      : scores_(products.sum(p.d)),
        early_(request.rounding, request.mode->first, p, has_few_values(request)),
        ordered_(is_ordered(request)),
        cap_(p.softcap == 0 ? std::numeric_limits<double>::infinity() : p.softcap),
        upset_(products.tf32_unit() == 0 ? MaxLogitFact::upset : MaxLogitFact::tf32_upset),
        stored_upset_(request.mode->first == core::Dtype::fp16 ? MaxLogitFact::fp16_upset : MaxLogitFact::bf16_upset),
        alike_(ordered_ ? 4 * square(products.tf32_unit()) / 3 : 0) {
    const double least = std::ldexp(1.0, core::dtype_info(products.format).emin), factor = std::fabs(p.factor());
    const double both = least * (request.first_max + request.second_max) + least * least;
    lost_ = scores_.star * static_cast<double>(p.d) * both * factor + (static_cast<double>(p.d) + 4) * kFlush;
    lost_variance_ =
        scores_.absolute * square(least * std::max(request.first_max, request.second_max) * factor) + square(kFlush);
  }

  /// 1 without a cap.
  [[nodiscard]] double slope_of_cap(double argument) const {
    return 1 - square(std::tanh(std::max(0.0, argument) / cap_));
  }

  SumError scores_;
  ScoreRounding early_;
  bool ordered_;               ///< partial sums may be as large as the sum of magnitudes
  double cap_;                 ///< infinite without one
  MaxLogitFact upset_;         ///< which one counts
  MaxLogitFact stored_upset_;  ///< of declared roundings
  double alike_;               ///< of operands that are all rounded to TF32 by the same part
  double lost_ = 0;            ///< bound of what subnormal operands and sums lose
  double lost_variance_ = 0;
};

bool is_undetermined(const op::OutputValues& output, std::size_t at) {
  return output.magnitude[at] > 0;
}

/// Calls body(number of its facts, its element) for every query that the tensors have.
template <class Body>
void for_each_query(const op::AttentionParams& p, const Body& body) {
  for (std::int64_t head = 0; head < p.batches * p.heads; ++head) {
    const op::HeadPlace place = op::statistic_place(p, head / p.heads, head % p.heads);
    const std::int64_t queries = op::positions(p, op::Side::queries, head / p.heads);
    for (std::int64_t i = 0; i < queries; ++i) {
      body(static_cast<std::size_t>(head * p.sq + i), static_cast<std::size_t>(place.first + i * place.stride));
    }
  }
}

/// Ratio of root mean squares of what rivals add and of the largest scores: a shift of one sign.
double shift_of(const model::ModelRequest& request, const op::Values& values) {
  const op::OutputValues& output = largest_scores(values);
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const MaxLogit model(request, p);
  double shifts = 0, squares = 0;
  for_each_query(p, [&](std::size_t query, std::size_t at) {
    const double score = output.value[at], shift = model.error(output, query).alike;
    if (!is_undetermined(output, at) && std::isfinite(score) && std::isfinite(shift)) {
      shifts += shift;
      squares += square(score);
    }
  });
  return shifts == 0 ? 0 : std::sqrt(shifts / squares);
}

}  // namespace

void max_logit_error(const model::ModelRequest& request, const op::Values& values, std::span<float> bound,
                     std::span<float> deviation) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const op::OutputValues& output = largest_scores(values);
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const MaxLogit model(request, p);
  std::ranges::fill(bound, std::numeric_limits<float>::max());
  std::ranges::fill(deviation, std::numeric_limits<float>::infinity());
  for_each_query(p, [&](std::size_t query, std::size_t at) {
    if (!is_undetermined(output, at)) {
      const MaxLogit::Error error = model.error(output, query);
      bound[at] = static_cast<float>(std::min(error.bound * (1 + 0x1p-20), kLargest));  // facts are FP32
      deviation[at] = static_cast<float>(std::sqrt(error.variance));
    }
  });
}

model::ErrorModel max_logit_error_model(const model::ModelRequest& request) {
  constexpr double kUndetermined = 1e38;
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const AttentionProducts products(request);
  model::ErrorModel model;
  model.output = request.output;
  model.output_scale = request.output_scale;
  model.bound_magnitude = 1;
  model.var_second = 1;
  model.kappa = kAttentionKappa;
  model.overflow_magnitude = kUndetermined;
  model.slope_slack = std::sqrt(products.sum(p.d).common) + 8 * kUnit32;
  model.reduction = static_cast<double>(p.d);
  model.one_error = request.constant_inputs;
  model.lost_alike = true;
  model.source =
      fmt::format("attention_fwd/{} on {}, {}: d={}, the largest of {} scores", request.mode->name,
                  products.chain ? "FP32 fused multiply-adds" : products.arithmetic.description, kPort, p.d, p.sk);
  if (const std::string stored = describe(request.rounding, core::dtype_info(request.mode->first).name);
      !stored.empty()) {
    model.source += "; " + stored;
  }
  model.shared_slope = [request](const op::Values& values) { return shift_of(request, values); };
  model.element_errors = [request](const op::Values& values, std::span<float> bound, std::span<float> deviation) {
    max_logit_error(request, values, bound, deviation);
    judge_by_bound(request, bound, deviation);
  };
  return model;
}

}  // namespace numcheck::tolerance
