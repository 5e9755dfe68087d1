#include "diagnose/attention_likeness.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace numcheck::diagnose {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

/// Rows of channels of one tensor.
class Heads {
 public:
  Heads(const AttentionReading& reading, const NamedTensor& named)
      : tensor_(named.tensor),
        steps_(reading.steps(named.port, named.tensor)),
        is_key_(is_of_keys(named.port)),
        channels_(is_of_values(named.port) ? reading.p.dv : reading.p.d),
        first_(reading.first_tokens(is_key_)) {}

  [[nodiscard]] Row row(std::int64_t batch, std::int64_t head, std::int64_t position) const {
    const std::int64_t first = batch * steps_.batch +
                               (first_[static_cast<std::size_t>(batch)] + position) * steps_.position +
                               head * steps_.head;
    if (steps_.channel == 1) {
      return numbers(first, channels_);
    }
    Row row;
    for (std::int64_t c = 0; c < channels_; ++c) {
      row.push_back(numbers(first + c * steps_.channel, 1).front());
    }
    return row;
  }

  [[nodiscard]] Rows rows(std::int64_t batch, std::int64_t head, std::int64_t count) const {
    Rows all;
    for (std::int64_t i = 0; i < count; ++i) {
      all.push_back(row(batch, head, i));
    }
    return all;
  }

 private:
  /// Elements that follow one another in the file.
  [[nodiscard]] Row numbers(std::int64_t first, std::int64_t count) const {
    constexpr std::uint64_t kByte = 8;
    const std::uint64_t size = tensor_.element_bits / kByte;
    data::FileTensor part = tensor_;
    part.shape = {count};
    part.column_major = false;
    part.bytes = tensor_.bytes.subspan(static_cast<std::size_t>(first) * size, static_cast<std::size_t>(count) * size);
    const core::Buffer<double> values = data::values_of(part);
    return {values.span().begin(), values.span().end()};
  }

  const data::FileTensor& tensor_;
  HeadSteps steps_;
  bool is_key_;
  std::int64_t channels_;
  std::vector<std::int64_t> first_;
};

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

void add(Row& to, double factor, const Row& from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] += factor * from[i];
  }
}

/// Of the angle between what is delivered and what is expected.
struct Cosine {
  double product = 0, expected = 0, delivered = 0;

  void add(const Row& y, const Row& d) {
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (std::isfinite(y[i]) && std::isfinite(d[i])) {
        product += y[i] * d[i];
        expected += y[i] * y[i];
        delivered += d[i] * d[i];
      }
    }
  }
  [[nodiscard]] double value() const {
    return expected > 0 && delivered > 0 ? std::abs(product) / std::sqrt(expected * delivered) : 0;
  }
};

/// Masks that a caller may have meant, and factors of the scores.
constexpr std::array<std::string_view, 3> kMasks = {"none", "causal", "causal_bottom_right"};
constexpr std::size_t kFactors = 2, kWays = kMasks.size() * kFactors;

/// One query of one head of the queries.
struct Query {
  std::int64_t batch = 0, head = 0, position = 0;
};

/// Attention and its gradients, of few queries.
class Sampler {
 public:
  Sampler(const AttentionReading& reading, const std::vector<NamedTensor>& tensors)
      : reading_(reading), tensors_(tensors) {}

  double likeness() {
    double best = 0;
    const bool is_backward = named("do") != nullptr;  // then o is one of its inputs
    for (const std::string_view port : {"o", "dq", "dv", "dk"}) {
      output_ = is_backward && port == "o" ? nullptr : named(port);
      if (output_ == nullptr || !is_affordable()) {
        continue;
      }
      for (const bool takes_turns : {false, true}) {
        best = std::max(best, likeness_of_output(takes_turns));
      }
      if (best > 0) {  // gradients may all be zero: of a single key
        return best;
      }
    }
    return best;
  }

 private:
  static constexpr std::int64_t kHeads = 4, kQueries = 8;  // of few heads, few queries of each

  [[nodiscard]] const NamedTensor* named(std::string_view port) const {
    const auto found = std::ranges::find(tensors_, port, &NamedTensor::port);
    return found == tensors_.end() ? nullptr : &*found;
  }

  /// Whose head of keys is the next group's, or with `takes_turns` that of the next head.
  double likeness_of_output(bool takes_turns) {
    const op::AttentionParams& p = reading_.p;
    takes_turns_ = takes_turns;
    cosines_ = {};
    if (takes_turns && (p.key_heads() == p.heads || p.key_heads() == 1)) {
      return 0;
    }
    const Heads queries(reading_, *named("q")), keys(reading_, *named("k")), values(reading_, *named("v")),
        delivered(reading_, *output_);
    const std::optional<Heads> gradients =
        named("do") == nullptr ? std::nullopt : std::optional<Heads>(std::in_place, reading_, *named("do"));
    for (const std::int64_t head : some(p.batches * p.key_heads(), has_all_queries() ? 1 : kHeads)) {
      const std::int64_t batch = head / p.key_heads(), key_head = head % p.key_heads();
      keys_ = keys.rows(batch, key_head, length(true, batch));
      values_ = values.rows(batch, key_head, length(true, batch));
      for (Rows& sum : sums_) {
        sum.assign(keys_.size(), Row(static_cast<std::size_t>(output_->port == "dv" ? p.dv : p.d)));
      }
      for (const Query& query : queries_of(batch, key_head)) {
        look_at(query, queries.row(query.batch, query.head, query.position),
                gradients.has_value() ? gradients->row(query.batch, query.head, query.position) : Row(), delivered);
      }
      for (std::size_t way = 0; has_all_queries() && way < kWays; ++way) {
        for (std::size_t j = 0; j < keys_.size(); ++j) {
          cosines_[way].add(sums_[way][j], delivered.row(batch, key_head, static_cast<std::int64_t>(j)));
        }
      }
    }
    return std::ranges::max(cosines_, {}, &Cosine::value).value();
  }

  /// Gradients of keys and values are sums over queries.
  [[nodiscard]] bool has_all_queries() const { return output_->port == "dk" || output_->port == "dv"; }

  /// Multiplications of all rows that are looked at.
  [[nodiscard]] bool is_affordable() const {
    const op::AttentionParams& p = reading_.p;
    constexpr double kMost = 2e9, kMostNumbers = 0x1p24;  // and numbers of a head in memory
    const double queries = has_all_queries() ? static_cast<double>(p.sq * p.heads / p.key_heads())
                                             : static_cast<double>(kHeads * kQueries);
    const double keys = static_cast<double>(p.sk) * static_cast<double>(p.d + p.dv);
    return keys <= kMostNumbers && queries * keys * kWays <= kMost;
  }

  /// Numbers below `of` from its beginning, middle and end.
  static std::vector<std::int64_t> some(std::int64_t of, std::int64_t most) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < std::min(of, most); ++i) {
      numbers.push_back(of <= most ? i : most == 1 ? of / 2 : i * (of - 1) / (most - 1));
    }
    return numbers;
  }

  [[nodiscard]] std::int64_t length(bool is_key, std::int64_t batch) const {
    const std::vector<std::int64_t>& lengths = is_key ? reading_.kv_lengths : reading_.q_lengths;
    return lengths.empty() ? (is_key ? reading_.p.sk : reading_.p.sq) : lengths[static_cast<std::size_t>(batch)];
  }

  [[nodiscard]] std::vector<Query> queries_of(std::int64_t batch, std::int64_t key_head) const {
    const std::int64_t group = reading_.p.heads / reading_.p.key_heads(), length_of_queries = length(false, batch);
    std::vector<Query> queries;
    for (const std::int64_t position : some(length_of_queries, has_all_queries() ? length_of_queries : kQueries)) {
      for (std::int64_t h = 0; h < group; ++h) {
        if (has_all_queries() || h == position % group) {
          const std::int64_t head = takes_turns_ ? h * reading_.p.key_heads() + key_head : key_head * group + h;
          queries.push_back({batch, head, position});
        }
      }
    }
    return queries;
  }

  void look_at(const Query& query, const Row& q, const Row& gradient, const Heads& delivered) {
    const auto count = static_cast<std::int64_t>(keys_.size());
    Row scores, gradients;
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      scores.push_back(dot(q, keys_[j]));
      gradients.push_back(gradient.empty() ? 0 : dot(gradient, values_[j]));
    }
    for (std::size_t way = 0; way < kWays; ++way) {
      op::AttentionParams p = reading_.p;
      p.mask = kMasks[way / kFactors];
      const op::KeyRange seen = p.visible(query.position, length(false, query.batch), count);
      const Row weights = softmax(scores, seen, way % kFactors == 0 ? p.factor() : 1);
      double sum = 0;
      for (std::size_t j = 0; j < weights.size(); ++j) {
        sum += weights[j] * gradients[j];
      }
      Row y(keys_.empty() ? 0 : output_->port == "o" ? values_.front().size() : keys_.front().size());
      for (std::size_t j = 0; j < weights.size(); ++j) {
        const double of_score = weights[j] * (gradients[j] - sum);
        if (has_all_queries()) {
          add(sums_[way][j], output_->port == "dv" ? weights[j] : of_score, output_->port == "dv" ? gradient : q);
        } else {
          add(y, output_->port == "o" ? weights[j] : of_score, output_->port == "o" ? values_[j] : keys_[j]);
        }
      }
      if (!has_all_queries()) {
        cosines_[way].add(y, delivered.row(query.batch, query.head, query.position));
      }
    }
  }

  [[nodiscard]] Row softmax(const Row& scores, const op::KeyRange& seen, double factor) const {
    const auto capped = [&](double score) {
      const double cap = reading_.p.softcap;
      return cap == 0 ? factor * score : cap * std::tanh(factor * score / cap);
    };
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      largest = std::max(largest, capped(scores[static_cast<std::size_t>(j)]));
    }
    Row weights(scores.size());
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      const auto at = static_cast<std::size_t>(j);
      sum += weights[at] = std::exp(capped(scores[at]) - largest);
    }
    for (double& weight : weights) {
      weight = sum > 0 ? weight / sum : 0;
    }
    return weights;
  }

  const AttentionReading& reading_;
  const std::vector<NamedTensor>& tensors_;
  const NamedTensor* output_ = nullptr;
  bool takes_turns_ = false;
  Rows keys_, values_;
  std::array<Rows, kWays> sums_;  ///< of the keys of a head, if all queries take part
  std::array<Cosine, kWays> cosines_;
};

}  // namespace

double likeness_of(const AttentionReading& reading, const std::vector<NamedTensor>& tensors) {
  return Sampler(reading, tensors).likeness();
}

ChosenReading choose(const std::vector<AttentionReading>& readings, const std::vector<NamedTensor>& tensors) {
  std::vector<double> likeness;
  for (const AttentionReading& reading : readings) {
    likeness.push_back(readings.size() > 1 ? likeness_of(reading, tensors) : 1);
  }
  // What is left of 1 - cosine is what the reading does not explain.
  constexpr double kMuchLess = 0.7, kLikely = 0.3, kProven = 0.98;
  const auto best = static_cast<std::size_t>(std::ranges::max_element(likeness) - likeness.begin());
  bool is_likely = likeness[best] > kLikely;
  for (std::size_t i = 0; i < likeness.size(); ++i) {
    is_likely = is_likely && (i == best || 1 - likeness[best] < kMuchLess * (1 - likeness[i]));
  }
  using Certainty = ChosenReading::Certainty;
  return {is_likely ? best : 0, !is_likely                 ? Certainty::none
                                : likeness[best] > kProven ? Certainty::proven
                                                           : Certainty::likely};
}

}  // namespace numcheck::diagnose
