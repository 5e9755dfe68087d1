#include "op/attention_fwd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "reference/attention_problem.hpp"
#include "reference/product.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

/// Queries and keys of one step. A step's scores (256 KiB) and the keys' and values' channels stay in a second-level
/// cache.
constexpr std::int64_t kQueries = 64;
constexpr std::int64_t kKeys = 512;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void multiply(const TileProduct<double>& product) {
  if (blas_is_usable()) {
    multiply_by_blas(product);
  } else {
    multiply_by_eigen(product);
  }
}

op::KeyRange common(const op::KeyRange& a, const op::KeyRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// Some queries of one head: softmax of their scores key by key, with the largest score so far taken out.
class QueryBlock {
 public:
  QueryBlock(const AttentionProblem& problem, std::int64_t batch, std::int64_t head, std::int64_t first,
             std::int64_t count)
      : problem_(problem),
        lengths_(problem.lengths(batch)),
        head_(head),
        first_(first),
        count_(count),
        width_(problem.params().value_channels()),
        queries_(problem.queries(batch, head)),
        keys_(problem.keys(batch, head)),
        values_(problem.values(batch, head)),
        scores_(static_cast<std::size_t>(count * kKeys)),
        product_(static_cast<std::size_t>(count * width_)),
        sums_(static_cast<std::size_t>(count * width_)),
        rows_(static_cast<std::size_t>(count)) {
    const double sink = problem.sink(head);
    for (std::int64_t i = 0; i < count; ++i) {
      rows_[static_cast<std::size_t>(i)] = {problem.params().visible(first + i, lengths_.queries, lengths_.keys), sink,
                                            sink == -kInfinity ? 0.0 : 1.0};
    }
  }

  void run() {
    op::KeyRange seen{std::numeric_limits<std::int64_t>::max(), 0};
    for (const Row& row : rows_) {
      if (row.visible.size() > 0) {
        seen = {std::min(seen.begin, row.visible.begin), std::max(seen.end, row.visible.end)};
      }
    }
    for (std::int64_t begin = seen.begin; begin < seen.end; begin += kKeys) {
      add({begin, std::min(begin + kKeys, seen.end)});
    }
  }

  [[nodiscard]] double lse(std::int64_t i) const {
    const Row& row = rows_[static_cast<std::size_t>(i)];
    return row.sum == 0 ? -kInfinity : row.largest + std::log(row.sum);
  }
  [[nodiscard]] double output(std::int64_t i, std::int64_t channel) const {
    const Row& row = rows_[static_cast<std::size_t>(i)];
    return row.sum == 0 ? 0 : sums_[static_cast<std::size_t>(i * width_ + channel)] / row.sum;
  }

 private:
  struct Row {
    op::KeyRange visible;
    double largest = -kInfinity;  ///< score so far
    double sum = 0;               ///< of exp(score - largest)
  };

  [[nodiscard]] std::span<double> scores_of(std::int64_t i, const op::KeyRange& keys, const op::KeyRange& part) {
    return std::span(scores_).subspan(static_cast<std::size_t>(i * kKeys + part.begin - keys.begin),
                                      static_cast<std::size_t>(part.size()));
  }

  void add(const op::KeyRange& keys) {
    multiply({{queries_.data + first_ * queries_.stride, queries_.stride, false},
              {keys_.data + keys.begin * keys_.stride, keys_.stride, true},
              count_,
              keys.size(),
              problem_.params().d,
              scores_.data(),
              kKeys});
    for (std::int64_t i = 0; i < count_; ++i) {
      weigh(i, keys);
    }
    if (all_finite(keys)) {
      multiply({{scores_.data(), kKeys, false},
                {values_.data + keys.begin * values_.stride, values_.stride, false},
                count_,
                width_,
                keys.size(),
                product_.data(),
                width_});
      std::ranges::transform(sums_, product_, sums_.begin(), std::plus<>());
    } else {
      add_visible_values(keys);
    }
  }

  /// Turns a row's products into exp(score - largest), 0 where a key is not seen.
  void weigh(std::int64_t i, const op::KeyRange& keys) {
    Row& row = rows_[static_cast<std::size_t>(i)];
    const op::KeyRange part = common(keys, row.visible);
    const std::span<double> all = scores_of(i, keys, keys);
    if (part.size() == 0) {
      std::ranges::fill(all, 0);
      return;
    }
    const std::span<double> scores = scores_of(i, keys, part);
    problem_.score(head_, lengths_, first_ + i, part, scores);
    const double largest = std::max(row.largest, *std::ranges::max_element(scores));
    const double shrink = row.largest == -kInfinity ? 0 : std::exp(row.largest - largest);
    double sum = 0;
    for (double& score : scores) {
      score = std::exp(score - largest);
      sum += score;
    }
    row.sum = row.sum * shrink + sum;
    row.largest = largest;
    if (shrink != 1) {
      for (double& x :
           std::span(sums_).subspan(static_cast<std::size_t>(i * width_), static_cast<std::size_t>(width_))) {
        x *= shrink;
      }
    }
    std::fill(all.begin(), all.begin() + (part.begin - keys.begin), 0.0);
    std::fill(all.begin() + (part.end - keys.begin), all.end(), 0.0);
  }

  [[nodiscard]] bool all_finite(const op::KeyRange& keys) const {
    for (std::int64_t j = keys.begin; j < keys.end; ++j) {
      const std::span row(values_.data + j * values_.stride, static_cast<std::size_t>(width_));
      if (!std::ranges::all_of(row, [](double x) { return std::isfinite(x); })) {
        return false;
      }
    }
    return true;
  }

  /// Values that are not finite must not reach queries that do not see them: 0 * NaN is NaN.
  void add_visible_values(const op::KeyRange& keys) {
    for (std::int64_t i = 0; i < count_; ++i) {
      const op::KeyRange part = common(keys, rows_[static_cast<std::size_t>(i)].visible);
      for (std::int64_t j = part.begin; j < part.end; ++j) {
        const double weight = scores_[static_cast<std::size_t>(i * kKeys + j - keys.begin)];
        for (std::int64_t c = 0; c < width_; ++c) {
          sums_[static_cast<std::size_t>(i * width_ + c)] += weight * values_.data[j * values_.stride + c];
        }
      }
    }
  }

  const AttentionProblem& problem_;
  Lengths lengths_;
  std::int64_t head_, first_, count_, width_;
  HeadRows queries_, keys_, values_;
  std::vector<double> scores_;   ///< count x kKeys
  std::vector<double> product_;  ///< count x width
  std::vector<double> sums_;     ///< count x width: sum of exp(score - largest) v
  std::vector<Row> rows_;
};

struct Outputs {
  TrackedOutput o, lse;
};

void attend(const AttentionProblem& problem, std::int64_t batch, std::int64_t head, std::int64_t first, Outputs& out) {
  const op::AttentionParams& p = problem.params();
  const std::int64_t end = std::min(first + kQueries, p.sq);
  const std::int64_t within = std::clamp(problem.lengths(batch).queries, first, end);
  QueryBlock block(problem, batch, head, first, within - first);
  block.run();
  for (std::int64_t i = first; i < end; ++i) {
    const std::size_t begin = problem.output_index(batch, head, i);
    const auto place = static_cast<std::size_t>((batch * p.heads + head) * p.sq + i);
    for (std::int64_t c = 0; c < p.value_channels(); ++c) {
      const std::size_t at = begin + static_cast<std::size_t>(c);
      i < within ? out.o.set(at, block.output(i - first, c)) : out.o.set_undetermined(at, 0);
    }
    i < within ? out.lse.set(place, block.lse(i - first)) : out.lse.set_undetermined(place, 0);
  }
}

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const AttentionProblem problem(p, request.inputs);
  const std::int64_t heads = p.batches * p.heads;
  Outputs out{{"o", static_cast<std::size_t>(heads * p.sq * p.value_channels()), true},
              {"lse", static_cast<std::size_t>(heads * p.sq), true}};
  const std::int64_t blocks = (p.sq + kQueries - 1) / kQueries;
  core::parallel_for(static_cast<std::size_t>(heads * blocks), [&](std::size_t task) {
    const auto head = static_cast<std::int64_t>(task) / blocks;
    attend(problem, head / p.heads, head % p.heads, static_cast<std::int64_t>(task) % blocks * kQueries, out);
  });
  op::Values result;
  result.outputs.push_back(std::move(out.o).take());
  result.outputs.push_back(std::move(out.lse).take());
  return result;
}

/// Lengths from draws: the first sequence is whole, the third is empty, the others have any length.
void derive(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const auto longest = static_cast<double>(request.port->name == "q_lengths" ? p.sq : p.sk);
  for (std::size_t b = 0; b < values.size(); ++b) {
    const double fraction = std::fabs(values[b]) * 1024 - std::floor(std::fabs(values[b]) * 1024);
    values[b] = b == 0 && values.size() > 1 ? longest : b == 2 ? 0 : std::floor(fraction * (longest + 1));
  }
}

}  // namespace

op::Reference attention_fwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.version = "attention_fwd-1";
  reference.derive = &derive;
  return reference;
}

}  // namespace numcheck::reference
