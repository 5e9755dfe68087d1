#include "tolerance/attention_slope.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/parallel.hpp"
#include "op/attention_fwd.hpp"
#include "tolerance/attention_gradient_shape.hpp"
#include "tolerance/attention_lost.hpp"
#include "tolerance/attention_model.hpp"
#include "tolerance/attention_products.hpp"
#include "tolerance/attention_query.hpp"
#include "tolerance/output_named.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::size_t kRows = 256;  // of a part of a sum

double square(double x) {
  return x * x;
}

/// The slopes of queries' o.
class QuerySlopes {
 public:
  QuerySlopes(const model::ModelRequest& request, const op::AttentionParams& p, const op::OutputValues& o)
      : common_(request, p), shape_(p, "o"), o_(o) {}

  [[nodiscard]] const GradientShape& shape() const noexcept { return shape_; }
  /// False of positions without a query, and of queries that the reference has left out.
  [[nodiscard]] bool has(std::size_t query) const {
    return shape_.has(query) && !std::isinf(QueryFacts(o_, query)[AttentionFact::keys]);
  }
  /// Of every query; 0 of those that has() denies.
  [[nodiscard]] std::vector<double> all() const {
    std::vector<double> slopes(shape_.rows());
    const bool rounds_weights = common_.unit > 0 || common_.largest_alike > 0;
    core::parallel_chunks(slopes.size(), kRows, [&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t query = begin; query < end; ++query) {
        if (has(query)) {
          const QueryErrors errors(common_, QueryFacts(o_, query));
          slopes[query] = errors.shared_slope(rounds_weights ? sizes_of(query) : QuerySizes());
        }
      }
    });
    return slopes;
  }

 private:
  /// Over the channels.
  [[nodiscard]] QuerySizes sizes_of(std::size_t query) const {
    const std::size_t first = shape_.first_of(query), end = first + static_cast<std::size_t>(shape_.channels);
    double squares = 0, seconds = 0, outputs = 0;
    for (std::size_t at = first; at < end; ++at) {
      squares += square(static_cast<double>(o_.magnitude[at]));
      seconds += square(static_cast<double>(o_.deviation[at]));
      outputs += square(o_.value[at]);
    }
    const auto ratio = [&](double divisor) {
      return divisor > 0 && std::isfinite(squares / divisor) ? squares / divisor : 1;
    };
    return {.over_seconds = ratio(seconds), .over_outputs = ratio(outputs)};
  }

  QueryCommon common_;
  GradientShape shape_;
  const op::OutputValues& o_;
};

/// Of the part of the queries that a task has.
struct Part {
  double slopes = 0, signal = 0;
  LostRows lost;
};

double slope_of_output(const model::ModelRequest& request, const op::Values& values, const op::AttentionParams& p) {
  const op::OutputValues& o = output_named(values, "o");
  const AttentionProducts products(request);
  const QuerySlopes queries(request, p, o);
  const std::vector<double> slopes = queries.all();
  if (products.unit() == 0 && std::ranges::all_of(slopes, [](double slope) { return slope == 0; })) {
    return 0;
  }
  std::vector<float> bound(o.value.size()), deviation(o.value.size());
  attention_error(request, values, "o", bound, deviation);
  const auto channels = static_cast<std::size_t>(queries.shape().channels);
  std::vector<Part> parts((slopes.size() + kRows - 1) / kRows);
  core::parallel_chunks(slopes.size(), kRows, [&](std::size_t index, std::size_t begin, std::size_t end) {
    Part& part = parts[index];
    for (std::size_t query = begin; query < end; ++query) {
      if (!queries.has(query)) {
        continue;
      }
      double signal = 0;
      const std::size_t first = queries.shape().first_of(query);
      for (std::size_t at = first; at < first + channels; ++at) {
        signal += signal_of(o.value[at], bound[at], deviation[at], request);
      }
      part.lost.add(signal, channels);
      if (std::isfinite(slopes[query])) {  // otherwise scores are infinite
        part.slopes += signal * slopes[query];
        part.signal += signal;
      }
    }
  });
  Part all;
  for (const Part& part : parts) {
    all.slopes += part.slopes;
    all.signal += part.signal;
    all.lost.add(part.lost);
  }
  return (all.signal == 0 ? 0 : all.slopes / all.signal) + (products.unit() == 0 ? 0 : all.lost.slope()) +
         (products.scaled ? truncation_slope(products, p.sk, o) : 0);
}

double slope_of_statistic(const model::ModelRequest& request, const op::Values& values, const op::AttentionParams& p) {
  const op::OutputValues& o = output_named(values, "o");
  const op::OutputValues& statistic = output_named(values, "lse");
  const QueryCommon common(request, p);
  double errors = 0, squares = 0;
  for (std::size_t query = 0; query < o.row_facts.front().size(); ++query) {
    if (std::isinf(QueryFacts(o, query)[AttentionFact::keys])) {
      continue;
    }
    const double lse = statistic.value[op::statistic_element(p, query)];
    const double error = QueryErrors(common, {o, query}).shared_square();
    if (std::isfinite(lse) && std::isfinite(error)) {  // otherwise scores are infinite
      errors += error;
      squares += lse * lse;
    }
  }
  return errors == 0 ? 0 : std::sqrt(errors / squares);
}

}  // namespace

double attention_shared_slope(const model::ModelRequest& request, const op::Values& values, std::string_view port) {
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  return port == "lse" ? slope_of_statistic(request, values, p) : slope_of_output(request, values, p);
}

std::vector<float> query_slopes(const model::ModelRequest& request, const op::Values& values) {
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const op::OutputValues& o = output_named(values, "o");
  const QuerySlopes queries(request, p, o);
  const std::vector<double> of_queries = queries.all();
  const auto channels = static_cast<std::size_t>(queries.shape().channels);
  std::vector<float> slopes(o.value.size() / channels);
  for (std::size_t query = 0; query < of_queries.size(); ++query) {
    if (queries.has(query)) {
      slopes[queries.shape().first_of(query) / channels] = static_cast<float>(of_queries[query]);
    }
  }
  return slopes;
}

}  // namespace numcheck::tolerance
