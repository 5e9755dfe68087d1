#include "tolerance/attention_bwd_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "op/attention_bwd.hpp"
#include "tolerance/attention_bwd_rounding.hpp"
#include "tolerance/attention_bwd_slope.hpp"
#include "tolerance/attention_gradient_row.hpp"
#include "tolerance/attention_gradient_shape.hpp"
#include "tolerance/attention_model.hpp"
#include "tolerance/attention_products.hpp"
#include "tolerance/largest_error.hpp"
#include "tolerance/output_named.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {
namespace {

float upward(double x) {
  const auto nearest = static_cast<float>(x);
  return static_cast<double>(nearest) < x ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
}

double square(double x) {
  return x * x;
}

/// Of `count` elements from `first` on.
GradientRowErrors::Means means_of(const op::OutputValues& judged, std::size_t first, std::int64_t count) {
  GradientRowErrors::Means means;
  for (std::size_t at = first; at < first + static_cast<std::size_t>(count); ++at) {
    const auto rho = static_cast<double>(judged.magnitude[at]);
    means.squares += square(static_cast<double>(judged.deviation[at])) / static_cast<double>(count);
    means.rho2 += rho < kUndeterminedBound ? rho * rho / static_cast<double>(count) : 0;
  }
  return means;
}

/// True if correct kernels may differ by any amount in an element of a row (reference/attention_gradient_fates.hpp).
bool is_unknown(const op::OutputValues& judged, const GradientShape& shape, std::size_t row) {
  const std::span<const float> all = judged.magnitude.span();
  return std::ranges::any_of(all.subspan(shape.first_of(row), static_cast<std::size_t>(shape.channels)),
                             [](float rho) { return static_cast<double>(rho) >= kUndeterminedBound; });
}

/// Of the largest gradient of a scaled product.
GradientError largest_change(const model::ModelRequest& request, const op::AttentionParams& p,
                             const op::Values& values) {
  const op::OutputValues& dq = output_named(values, "dq");
  const double of_all = output_named(values, "dp_amax").value[0];
  const GradientRounding early(request, p, "dq", dq);
  const GradientCommon common(request, p, "dq");
  const GradientShape shape(p, "dq");
  LargestError largest;
  for (std::size_t row = 0; row < shape.rows(); ++row) {
    const GradientRowErrors of_query(common, early, {dq, row});
    if (!shape.has(row) || of_query.is_empty()) {
      continue;
    }
    const bool unknown = is_unknown(dq, shape, row);
    const GradientError e = unknown ? GradientError{kUndeterminedBound, kUndeterminedBound} : of_query.largest(of_all);
    largest.add(e.bound, std::sqrt(e.variance), unknown ? 0 : of_all - of_query.largest_change());
  }
  return {largest.bound(), square(largest.deviation())};
}

/// sum |p w x| <= R rho, by Cauchy and Schwarz.
void gradient_terms(const op::AttentionBwdParams& p, std::string_view port, const op::Values& values,
                    std::span<float> terms) {
  const op::OutputValues& output = output_named(values, port);
  const GradientShape shape(p, port);
  std::ranges::fill(terms, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t row = 0; row < shape.rows(); ++row) {
    const double weight = shape.has(row) ? GradientRow(output, row)[GradientFact::weight] : 0;
    for (std::size_t c = 0; shape.has(row) && c < static_cast<std::size_t>(shape.channels); ++c) {
      const std::size_t at = shape.first_of(row) + c;
      terms[at] = static_cast<float>(weight * static_cast<double>(output.magnitude[at]));
    }
  }
}

/// The output whose errors judge a port: dq for dq_amax.
std::string judged_output(std::string_view port) {
  constexpr std::string_view kAmax = "_amax";
  return std::string(port.ends_with(kAmax) && port != "dp_amax" ? port.substr(0, port.size() - kAmax.size()) : port);
}

/// An error that is not `known` is undetermined.
void set(std::span<float> bound, std::span<float> deviation, std::size_t at, const GradientError& e, bool known) {
  bound[at] = known ? upward(e.bound * (1 + 0x1p-20)) : std::numeric_limits<float>::max();  // facts are FP32
  deviation[at] = known ? upward(std::sqrt(e.variance)) : std::numeric_limits<float>::infinity();
}

/// Rows whose products of do and v are all alike have the same error of dp in all elements: how many of these it moves to
/// another number is one draw.
double roundings_of_one_error(const op::OutputValues& judged) {
  constexpr auto kFact = static_cast<std::size_t>(GradientFact::equal_values);
  if (judged.row_facts.size() <= kFact || judged.row_facts[kFact].empty()) {
    return 1;
  }
  const std::span<const float> rows = judged.row_facts[kFact].span();
  const auto alike = static_cast<double>(std::ranges::count_if(rows, [](float is_alike) { return is_alike > 0; }));
  return std::max(1.0, static_cast<double>(judged.value.size()) * alike / static_cast<double>(rows.size()));
}

/// The largest alike_scores of each head's queries.
std::vector<double> shared_by_heads(const GradientRounding& early, const op::OutputValues& dq,
                                    const GradientShape& shape) {
  std::vector<double> shared(static_cast<std::size_t>(shape.heads));
  for (std::size_t row = 0; row < shape.rows(); ++row) {
    const double of_row = shape.has(row) ? early.alike_scores(GradientRow(dq, row)) : 0;
    double& of_head = shared[row / static_cast<std::size_t>(shape.length) % shared.size()];
    of_head = std::isfinite(of_row) ? std::max(of_head, of_row) : of_head;
  }
  return shared;
}

}  // namespace

void attention_bwd_error(const model::ModelRequest& request, const op::Values& values, std::string_view port,
                         std::span<float> bound, std::span<float> deviation) {
  const op::OutputValues& judged = output_named(values, port);
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  const GradientRounding early(request, p, port, port == "dp_amax" ? output_named(values, "dq") : judged);
  if (port == "dsoftmax_offset") {
    const GradientCommon common(request, p, "dq");
    const std::vector<double> alike = shared_by_heads(early, output_named(values, "dq"), GradientShape(p, "dq"));
    for (std::size_t head = 0; head < bound.size(); ++head) {
      const GradientError e = sum_of(early.offset(judged, head, alike[head]), common.offset(judged, head));
      bound[head] = upward(static_cast<double>(judged.magnitude[head]) + e.bound);
      deviation[head] = upward(std::sqrt(square(static_cast<double>(judged.deviation[head])) + e.variance));
    }
    return;
  }
  if (port == "dp_amax") {
    const GradientError e = largest_change(request, p, values);
    set(bound, deviation, 0, e,
        e.bound < kUndeterminedBound && static_cast<double>(judged.magnitude[0]) < kUndeterminedBound);
    return;
  }
  for (const op::OutputValues::Range& unused : judged.outside) {
    for (auto at = static_cast<std::size_t>(unused.begin); at < static_cast<std::size_t>(unused.end); ++at) {
      set(bound, deviation, at, {}, false);
    }
  }
  const GradientCommon common(request, p, port);
  const GradientShape shape(p, port);
  // Other formats have scales, or the range of FP32.
  const double largest = request.output == core::Dtype::fp16 ? core::dtype_info(request.output).max_finite
                                                             : std::numeric_limits<double>::infinity();
  core::parallel_chunks(shape.rows(), 64, [&](std::size_t, std::size_t first, std::size_t end) {
    for (std::size_t r = first; r < end; ++r) {
      if (!shape.has(r)) {
        continue;
      }
      const GradientRowErrors row(common, early, {judged, r});
      const GradientRowErrors::Means means = means_of(judged, shape.first_of(r), shape.channels);
      for (std::size_t c = 0; c < static_cast<std::size_t>(shape.channels); ++c) {
        const std::size_t at = shape.first_of(r) + c;
        const double y = judged.value[at], rho = static_cast<double>(judged.magnitude[at]);
        const double squares = square(static_cast<double>(judged.deviation[at]));
        const GradientElement element(judged, at);
        const GradientError e = row.is_empty() ? GradientError()
                                : shape.bias   ? row.bias(y, rho, squares, element)
                                               : row.gradient(y, rho, squares, means, element);
        const double magnitude = std::fabs(y);
        const bool may_be_infinite = magnitude < largest && magnitude + e.bound >= largest;
        set(bound, deviation, at, e,
            e.bound < kUndeterminedBound && !std::isnan(e.variance) && rho < kUndeterminedBound && !may_be_infinite &&
                (row.is_empty() || !row.may_overflow(rho)));
      }
    }
  });
}

model::ErrorModel attention_bwd_error_model(const model::ModelRequest& request, std::string_view of) {
  if (of == "o" || of == "lse" || of == "dropout_mask") {
    return attention_error_model(request, of);
  }
  const std::string port = judged_output(of);
  constexpr double u = kUnit32;
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  const GradientCommon common(request, p, port);
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
  model.kappa = kAttentionKappa;
  model.overflow_magnitude = kUndeterminedBound;
  // Scores that are all off by the same part change all weights alike, because lse is an input.
  const double largest = std::fabs(p.factor()) * static_cast<double>(p.d) * request.first_max * request.first_scale *
                         request.second_max * request.second_scale;
  const SumError& scores = common.scores;
  const bool scaled = common.products.scaled;  // the slope for the largest score says too little
  const double alike_scores =
      scores_are_constant(request) ? 2 * common.products.tf32_unit() : 0;  // as q and k are rounded
  model.slope_slack = (static_cast<double>(terms) + 16) * u +
                      largest * ((scaled ? 0 : std::sqrt(scores.common)) + alike_scores + 3 * u);
  if (request.output_scale != 1) {
    model.bound_value = u;
    model.var_value = u * u / 3;
  }
  model.reduction = static_cast<double>(terms);
  model.columns_agree = port != "dsoftmax_offset";
  // Where scores are small, weights of FP8 are all the same, and so are the gradients of all queries or keys of a head. In
  // wider formats that is so of dv if there is one query.
  const bool alike = (scaled && port != "dsoftmax_offset") || (port == "dv" && p.sq == 1);
  model.rounding_copies = alike ? static_cast<double>(port == "dq" ? p.sq : p.sk) : 1;
  model.one_error = has_one_error(request);
  model.scatter_shows = weights_differ(request, p);
  model.lost_alike = common.products.unit() == 0 || port == "dbias" || port == "dsoftmax_offset" || port == "dp_amax";
  model.source =
      fmt::format("attention_bwd/{} on {}, {}: d={}, sums of {}", request.mode->name,
                  common.products.chain || port == "dsoftmax_offset" ? "FP32 fused multiply-adds"
                                                                     : common.products.arithmetic.description,
                  port, p.d, terms);
  const model::AttentionRounding rounding = roundings_of(request.rounding, port, p);
  if (rounding != model::AttentionRounding()) {
    model.source += "; " + describe(rounding, core::dtype_info(request.mode->first).name);
  }
  if (port == "dq" || port == "dk" || port == "dbias") {
    model.shared_roundings = [port](const op::Values& values) {
      return roundings_of_one_error(output_named(values, port));
    };
  }
  if (port != "dp_amax") {
    model.shared_slope = [request, p, port](const op::Values& values) {
      const op::OutputValues& judged = output_named(values, port);
      return slope_of_rows(request, values, port) + slope_of_truncated_scores(request, values, port) +
             GradientRounding(request, p, port, judged).shared_slope(judged);
    };
  }
  if ((of == "dq" || of == "dk" || of == "dv") && rows_differ(request)) {
    model.row_slopes = [request, port](const op::Values& values) { return row_slopes(request, values, port); };
  }
  if (of == "dq" || of == "dk" || of == "dv") {
    model.element_terms = [p, port](const op::Values& values, std::span<float> magnitudes) {
      gradient_terms(p, port, values, magnitudes);
    };
  }
  model.element_errors = [request, port](const op::Values& values, std::span<float> bound, std::span<float> deviation) {
    attention_bwd_error(request, values, port, bound, deviation);
    judge_by_bound(request, bound, deviation);
  };
  return model;
}

}  // namespace numcheck::tolerance
