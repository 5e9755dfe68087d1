#include "tolerance/attention_bwd_slope.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "op/attention_bwd.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_bwd_rounding.hpp"
#include "tolerance/attention_gradient_row.hpp"
#include "tolerance/attention_gradient_shape.hpp"
#include "tolerance/attention_lost.hpp"
#include "tolerance/attention_products.hpp"

namespace numcheck::tolerance {
namespace {

constexpr double kTruncation = 1.5;  // of what is predicted, as in gate G3

}  // namespace

double slope_of_rows(const model::ModelRequest& request, const op::Values& values, std::string_view port) {
  const AttentionProducts products(request);
  if (port == "dbias" || port == "dsoftmax_offset" || products.unit() == 0) {
    return 0;
  }
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  const op::OutputValues& judged = *std::ranges::find(values.outputs, port, &op::OutputValues::port);
  std::vector<float> bound(judged.value.size()), deviation(judged.value.size());
  attention_bwd_error(request, values, port, bound, deviation);
  const GradientShape shape(p, port);
  const bool has_sign = products.scaled || (port == "dv" && !p.has_dropout());
  const double rounded_alike = core::dtype_info(request.output).unit_roundoff / 2;
  const double alike = is_ordered(request) ? 2 * products.tf32_unit() : 0;  // do and v, rounded by the same part
  const double shrunk = port == "dv" ? 0 : kTruncation * std::sqrt(products.sum(p.value_channels()).common) + alike;
  double shifted = 0, signal = 0, single = 0, truncated = 0;
  LostRows lost;
  for (std::size_t row = 0; row < shape.rows(); ++row) {
    if (!shape.has(row)) {
      continue;
    }
    const double of_row = GradientRow(judged, row)[GradientFact::shift];
    const double dot = GradientRow(judged, row)[GradientFact::own_dot];
    const double shift =
        is_ordered(request) && std::isfinite(of_row) ? std::max(std::fabs(of_row), products.unit()) : of_row;
    const bool is_single = GradientRow(judged, row)[GradientFact::terms] == 1;
    const std::size_t first = shape.first_of(row), end = first + static_cast<std::size_t>(shape.channels);
    double of_row_signal = 0;
    for (std::size_t at = first; at < end && std::isfinite(shift); ++at) {
      const double y = judged.value[at], weight = signal_of(y, bound[at], deviation[at], request.output);
      if (weight == 0) {
        continue;
      }
      of_row_signal += weight;
      shifted += weight * (has_sign ? shift : std::fabs(shift));
      single += is_single ? weight * rounded_alike : 0;
      const double of_dot = GradientElement(judged, at).mean * dot;
      truncated += shrunk == 0 || !std::isfinite(of_dot) ? 0 : weight / y * of_dot;
    }
    signal += of_row_signal;
    lost.add(of_row_signal, end - first);
  }
  return signal == 0 ? 0 : (std::fabs(shifted) + single + shrunk * std::fabs(truncated)) / signal + lost.slope();
}

double slope_of_truncated_scores(const model::ModelRequest& request, const op::Values& values, std::string_view port) {
  const AttentionProducts products(request);
  if (!products.scaled || port == "dsoftmax_offset") {
    return 0;
  }
  const op::OutputValues& judged = *std::ranges::find(values.outputs, port, &op::OutputValues::port);
  double squares = 0, rows = 0;
  for (std::size_t index = 0; index < judged.row_facts.front().size(); ++index) {
    const GradientRow facts(judged, index);
    const double mean = facts[GradientFact::score_mean];
    if (facts[GradientFact::terms] > 0 && std::isfinite(mean)) {
      squares += mean * mean;
      ++rows;
    }
  }
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  return rows == 0 ? 0 : std::sqrt(products.sum(p.d).common * squares / rows);
}

}  // namespace numcheck::tolerance
