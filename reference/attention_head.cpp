#include "reference/attention_head.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>

#include "reference/special_rows.hpp"

namespace numcheck::reference {
namespace {

double square(double x) {
  return x * x;
}

}  // namespace

AttentionHead::AttentionHead(const AttentionProblem& p, std::int64_t in_batch, std::int64_t head, bool only_values)
    : problem(p),
      batch(in_batch),
      index(head),
      lengths(p.lengths(in_batch)),
      queries(p.queries(in_batch, head)),
      keys(p.keys(in_batch, head)),
      values(p.values(in_batch, head)),
      values_only(only_values),
      finite(values, lengths.keys, p.params().value_channels()) {
  if (!values_only) {
    measure_values();
    square_keys();
    measure_queries();
  }
}

void AttentionHead::measure_queries() {
  const auto d = static_cast<std::size_t>(problem.params().d);
  std::vector<double> sums(d), squares(d);
  double count = 0;
  for (std::int64_t i = 0; i < lengths.queries; ++i) {
    const std::span query(queries.data + i * queries.stride, d);
    if (!std::ranges::all_of(query, [](double x) { return std::isfinite(x); })) {
      continue;
    }
    ++count;
    for (std::size_t c = 0; c < d; ++c) {
      sums[c] += query[c];
      squares[c] += square(query[c]);
    }
  }
  double spread = 0;
  for (std::size_t c = 0; c < d && count > 0; ++c) {
    spread += std::max(0.0, squares[c] / count - square(sums[c] / count)) * channel_squares[c];
  }
  query_spread = count > 1 ? std::fabs(problem.factor()) * std::sqrt(spread) : std::numeric_limits<double>::infinity();
}

void AttentionHead::measure_values() {
  const auto width = static_cast<std::size_t>(problem.params().value_channels());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> lowest(width, kInfinity), highest(width, -kInfinity);
  value_squares.resize(width);
  value_sums.resize(width);
  for (std::int64_t j = 0; j < lengths.keys; ++j) {
    const std::span value(values.data + j * values.stride, width);
    for (std::size_t c = 0; c < width; ++c) {
      if (std::isfinite(value[c])) {
        value_squares[c] += square(value[c]);
        value_sums[c] += std::fabs(value[c]);
        lowest[c] = std::min(lowest[c], value[c]);
        highest[c] = std::max(highest[c], value[c]);
      }
    }
  }
  for (std::size_t c = 0; c < width; ++c) {
    value_range = std::max(value_range, highest[c] - lowest[c]);
    range_from_zero = std::max(range_from_zero, std::max(0.0, highest[c]) - std::min(0.0, lowest[c]));
  }
}

void AttentionHead::square_keys() {
  const auto d = static_cast<std::size_t>(problem.params().d);
  channel_squares.resize(d);
  std::int64_t finite_keys = 0;
  for (std::int64_t j = 0; j < lengths.keys; ++j) {
    const double* key = keys.data + j * keys.stride;
    const double sum = std::accumulate(key, key + d, 0.0, [](double total, double x) { return total + square(x); });
    keys_vanish = keys_vanish || std::any_of(key, key + d, vanishes_in_tf32);
    keys_are_infinite = keys_are_infinite || std::isinf(sum);
    key_squares.push_back(sum);
    if (!std::isfinite(sum)) {
      // Perhaps no query sees it. If one does, what is finite may still overflow on the way to an infinite score.
      const double finite_sum = std::accumulate(
          key, key + d, 0.0, [](double total, double x) { return std::isfinite(x) ? total + square(x) : total; });
      largest_square = std::max(largest_square, finite_sum);
      continue;
    }
    ++finite_keys;
    largest_square = std::max(largest_square, sum);
    for (std::size_t c = 0; c < d; ++c) {
      channel_squares[c] += square(key[c]);
    }
  }
  std::ranges::for_each(channel_squares,
                        [count = std::max(1.0, static_cast<double>(finite_keys))](double& x) { x /= count; });
  mean_square = std::accumulate(channel_squares.begin(), channel_squares.end(), 0.0);
  constexpr double kUneven = 4;
  uneven = std::ranges::any_of(channel_squares, [this](double x) {
    return x * static_cast<double>(channel_squares.size()) > kUneven * mean_square;
  });
}

}  // namespace numcheck::reference
