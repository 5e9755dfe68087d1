#include "tolerance/attention_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "op/attention_fwd.hpp"
#include "op/attention_layout.hpp"
#include "tolerance/attention_gradient_shape.hpp"
#include "tolerance/attention_lost.hpp"
#include "tolerance/attention_max_model.hpp"
#include "tolerance/attention_products.hpp"
#include "tolerance/attention_query.hpp"
#include "tolerance/attention_rounding.hpp"
#include "tolerance/attention_slope.hpp"
#include "tolerance/largest_error.hpp"
#include "tolerance/output_named.hpp"
#include "tolerance/tracked.hpp"
#include "tolerance/tracked_model.hpp"

namespace numcheck::tolerance {
namespace {

/// A query that the reference has left out.
bool is_undetermined(const op::OutputValues& o, std::size_t row) {
  return std::isinf(QueryFacts(o, row)[AttentionFact::keys]);
}

double square(double x) {
  return x * x;
}

/// The bound of an element as a finite number of its format.
float bounded(double x) {
  return static_cast<float>(std::min(x, static_cast<double>(std::numeric_limits<float>::max())));
}

}  // namespace

void attention_error(const model::ModelRequest& request, const op::Values& values, std::string_view port,
                     std::span<float> bound, std::span<float> deviation) {
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const op::OutputValues& o = output_named(values, "o");
  const op::OutputValues& lse = output_named(values, "lse");
  const op::OutputValues& judged = output_named(values, port);
  const QueryCommon common(request, p);
  const auto query_at = [&](std::size_t query) -> std::optional<QueryErrors> {
    if (is_undetermined(o, query)) {
      return std::nullopt;
    }
    return QueryErrors(common, {o, query});
  };
  const auto store = [&](std::size_t at, const QueryError& element, bool undetermined) {
    bound[at] = undetermined ? std::numeric_limits<float>::max() : bounded(element.bound);
    deviation[at] =
        undetermined ? std::numeric_limits<float>::infinity() : static_cast<float>(std::sqrt(element.variance));
  };
  if (port == "s_amax") {
    LargestError largest;
    for (std::size_t query = 0; query < o.row_facts.front().size(); ++query) {
      if (const std::optional<QueryErrors> row = query_at(query)) {
        const double below = judged.value[0] - QueryFacts(o, query)[AttentionFact::largest_weight];
        const QueryError of_row = row->largest(lse.value[op::statistic_element(p, query)]);
        largest.add(of_row.bound, std::sqrt(of_row.variance), below);
      }
    }
    store(0, {largest.bound(), square(largest.deviation())},
          std::isinf(judged.magnitude[0]) || std::isinf(judged.deviation[0]));
    return;
  }
  const std::int64_t width = p.value_channels();
  for (const op::OutputValues::Range& unused : judged.outside) {
    for (std::int64_t at = unused.begin; at < unused.end; ++at) {
      store(static_cast<std::size_t>(at), {}, true);
    }
  }
  core::parallel_for(static_cast<std::size_t>(p.batches * p.heads), [&](std::size_t head) {
    const auto batch = static_cast<std::int64_t>(head) / p.heads;
    const op::HeadPlace place =
        op::head_place(p, op::Side::queries, batch, static_cast<std::int64_t>(head) % p.heads, width);
    const op::HeadPlace statistic = op::statistic_place(p, batch, static_cast<std::int64_t>(head) % p.heads);
    const std::int64_t queries = op::positions(p, op::Side::queries, batch);
    for (std::int64_t i = 0; i < queries; ++i) {
      const std::size_t query = head * static_cast<std::size_t>(p.sq) + static_cast<std::size_t>(i);
      const std::optional<QueryErrors> row = query_at(query);
      const bool undetermined = !row.has_value();
      if (port == "lse") {
        const auto at = static_cast<std::size_t>(statistic.first + i * statistic.stride);
        store(at, row ? row->statistic(judged.value[at]) : QueryError(), undetermined);
        continue;
      }
      for (std::int64_t c = 0; c < width; ++c) {
        const auto at = static_cast<std::size_t>(place.first + i * place.stride + c);
        store(at,
              row ? row->output(judged.value[at], static_cast<double>(judged.magnitude[at]),
                                square(static_cast<double>(judged.deviation[at])))
                  : QueryError(),
              undetermined);
      }
    }
  });
}

model::ErrorModel attention_error_model(const model::ModelRequest& request, std::string_view port) {
  if (port == "max_logit") {
    return max_logit_error_model(request);
  }
  if (port == "dropout_mask") {  // random, whatever the inputs: findings judge it
    model::ErrorModel model = tracked_error_model(request, port);
    model.exact = false;
    return model;
  }
  constexpr double kUndetermined = 1e38;
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const AttentionProducts products(request);
  const std::int64_t sharing = p.heads / p.key_heads();
  model::ErrorModel model;
  model.output = request.output;
  model.output_scale = request.output_scale;
  model.exact = request.exact_leg && port == "o";
  model.exact_because = "weights are 0 or equal, and sums of values exact, so any order gives these bits";
  model.bound_magnitude = 1;
  model.var_second = 1;
  model.kappa = kAttentionKappa;
  model.overflow_magnitude = kUndetermined;
  model.slope_slack =
      (static_cast<double>(p.sk) + 16) * kUnit32 + (port == "o" && request.others_ordered ? products.tf32_unit() : 0);
  model.slope_low = products.scaled && port == "o" ? -kRoundVariance * square(products.unit()) : 0;
  model.reduction = static_cast<double>(p.sk);
  model.columns_agree = port == "o";
  model.rounding_copies = products.scaled && port == "o" ? static_cast<double>(p.sq * sharing) : 1;
  model.slope_copies = static_cast<double>(sharing);
  if (request.output_scale != 1) {
    model.bound_value = kUnit32;
    model.var_value = kUnit32 * kUnit32 / 3;
  }
  model.one_error = request.constant_inputs;
  model.scatter_shows = port != "lse" && weights_differ(request, p);
  model.lost_alike = products.unit() == 0;  // otherwise shared_slope has it
  model.source =
      fmt::format("attention_fwd/{} on {}, {}: d={}, keys={}", request.mode->name,
                  products.chain ? "FP32 fused multiply-adds" : products.arithmetic.description, port, p.d, p.sk);
  if (const std::string stored = describe(request.rounding, core::dtype_info(request.mode->first).name);
      !stored.empty()) {
    model.source += "; " + stored;
  }
  // The largest magnitude of o is judged by the errors of o.
  const std::string judged(port == "o_amax" ? "o" : port);
  model.shared_slope = [request, judged](const op::Values& values) {
    return attention_shared_slope(request, values, judged);
  };
  if (port == "o" && rows_differ(request)) {
    model.row_slopes = [request](const op::Values& values) { return query_slopes(request, values); };
  }
  if (port == "o") {
    // sum p |v| <= sqrt(sum p v^2): Cauchy and Schwarz
    model.element_terms = [](const op::Values& values, std::span<float> terms) {
      std::ranges::copy(output_named(values, "o").magnitude.span(), terms.begin());
    };
  }
  model.element_errors = [request, judged](const op::Values& values, std::span<float> bound,
                                           std::span<float> deviation) {
    attention_error(request, values, judged, bound, deviation);
    judge_by_bound(request, bound, deviation);
  };
  return model;
}

}  // namespace numcheck::tolerance
