#include "op/attention_fwd.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "kernels/sim/attention.hpp"
#include "kernels/sim/attention_faults.hpp"
#include "kernels/sim/attention_padded_amax.hpp"
#include "kernels/sim/attention_skips.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/tensor_io.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// One head: tiles of keys with an online softmax.
class Head {
 public:
  Head(const AttentionKernel& kernel, const AttentionTensors& tensors, std::int64_t batch, std::int64_t index)
      : kernel_(kernel), tensors_(tensors), batch_(batch), index_(index), queries_(tensors.query_count(batch)) {
    sums_ = {kernel.p.sq, kernel.p.value_channels(), {}};
    sums_.at.assign(static_cast<std::size_t>(sums_.rows * sums_.channels), 0.0F);
    rows_.resize(static_cast<std::size_t>(kernel.p.sq));
  }

  void run() {
    const std::int64_t of_keys = tensors_.key_head(index_);
    const HeadMatrix q = tensors_.queries(batch_, index_);
    const HeadMatrix k = tensors_.keys(batch_, of_keys);
    const HeadMatrix v = tensors_.values(batch_, of_keys);
    std::int64_t first = 0, last = 0;  // queries that may see the tile: masks and windows move along with them
    for (std::int64_t begin = 0; begin < k.rows; begin += kKeysOfTile) {
      const std::int64_t end = std::min(begin + kKeysOfTile, k.rows);
      if (kernel_.has("stale_lse")) {
        stale_ = rows_;
      }
      while (first < queries_ && tensors_.seen(batch_, first).end <= begin) {
        ++first;
      }
      while (last < queries_ && tensors_.seen(batch_, last).begin < end) {
        ++last;
      }
      if (first < last) {
        add(q.rows_of(first, last), first, k.rows_of(begin, end), v.rows_of(begin, end), begin);
      }
    }
    finish();
  }

  [[nodiscard]] const HeadMatrix& output() const noexcept { return sums_; }
  [[nodiscard]] const std::vector<float>& lse() const noexcept { return lse_; }
  [[nodiscard]] const std::vector<float>& max_logit() const noexcept { return max_logit_; }
  [[nodiscard]] float largest_weight() const noexcept { return largest_; }

 private:
  struct Row {
    float largest = -kInfinity;
    float sum = 0;
    float judged = -kInfinity;  ///< largest score
  };

  /// The weights of a tile's keys; sums of earlier tiles are rescaled.
  void weigh(std::int64_t i, std::int64_t begin, std::span<float> scores) {
    Row& row = rows_[static_cast<std::size_t>(i)];
    const op::KeyRange seen = tensors_.seen(batch_, i);
    const std::int64_t first = std::max(seen.begin, begin);
    const std::int64_t last = std::min(seen.end, begin + static_cast<std::int64_t>(scores.size()));
    if (first >= last) {
      std::ranges::fill(scores, 0.0F);
      return;
    }
    float largest = row.largest;
    for (std::int64_t j = first; j < last; ++j) {
      float& s = scores[static_cast<std::size_t>(j - begin)];
      row.judged = std::fmax(row.judged, kernel_.has("max_logit_before_bias") ? s * kernel_.scale() : -kInfinity);
      s = tensors_.score(batch_, index_, i, j, s);
      largest = std::fmax(largest, s);
    }
    const float shift = kernel_.has("no_max_subtraction") || largest == -kInfinity ? 0.0F : largest;
    const bool rescales =
        row.largest != largest && row.sum != 0 && !kernel_.has("no_max_subtraction") && !kernel_.has("rescale_missing");
    const float factor = rescales ? std::exp(row.largest - largest) : 1.0F;
    row.largest = largest;
    row.judged = kernel_.has("max_logit_before_bias") ? row.judged : largest;
    row.sum *= factor;
    for (std::int64_t c = 0; c < sums_.channels; ++c) {
      sums_.at[static_cast<std::size_t>(i * sums_.channels + c)] *= factor;
    }
    // A masked score of -infinity weighs nothing, unless a negative number has scaled it.
    const float masked = kernel_.has("mask_before_scale") && kernel_.scale() < 0 ? kInfinity : 0.0F;
    for (std::int64_t j = begin; j < begin + static_cast<std::int64_t>(scores.size()); ++j) {
      float& s = scores[static_cast<std::size_t>(j - begin)];
      s = j >= first && j < last ? std::exp(s - shift) : masked;
    }
    row.sum += block_sum(scores.size(), [&](std::size_t n) { return scores[n]; });
    for (std::int64_t j = first; j < last; ++j) {
      const float kept = tensors_.kept(batch_, index_, i, j);
      float& s = scores[static_cast<std::size_t>(j - begin)];
      s = tensors_.scales().weights.operand(s * kept);
    }
  }

  /// A tile of keys for the queries from `first` on.
  void add(const HeadMatrix& q, std::int64_t first, const HeadMatrix& k, const HeadMatrix& v, std::int64_t begin) {
    std::vector<float> scores = kernel_.product(q.at, k.transposed().at, q.rows, k.rows, q.channels);
    for (std::int64_t i = 0; i < q.rows; ++i) {
      weigh(first + i, begin,
            std::span(scores).subspan(static_cast<std::size_t>(i * k.rows), static_cast<std::size_t>(k.rows)));
    }
    HeadMatrix sums = sums_.rows_of(first, first + q.rows);
    if (kernel_.has("acc16_values")) {
      add_in_fp16(scores, v, sums);
    } else {
      tensors_.add_weighed({batch_, first, begin}, scores, kernel_.operands, v, sums);
    }
    std::ranges::copy(sums.at, sums_.at.begin() + first * sums_.channels);
  }

  static void add_in_fp16(std::span<const float> weights, const HeadMatrix& v, HeadMatrix& sums) {
    for (std::int64_t i = 0; i < sums.rows; ++i) {
      for (std::int64_t c = 0; c < sums.channels; ++c) {
        float& sum = sums.at[static_cast<std::size_t>(i * sums.channels + c)];
        for (std::int64_t j = 0; j < v.rows; ++j) {
          const float term = weights[static_cast<std::size_t>(i * v.rows + j)] * v.row(j)[static_cast<std::size_t>(c)];
          sum = static_cast<float>(core::round_to(static_cast<double>(sum + term), core::Dtype::fp16));
        }
      }
    }
  }

  void finish() {
    const float sink = tensors_.sink(index_);
    const float descale = tensors_.scales().weights.inverse * tensors_.scales().v;
    lse_.resize(rows_.size());
    max_logit_.resize(rows_.size());
    for (std::int64_t i = 0; i < sums_.rows; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const float total = total_of(rows_[at], sink);
      const float shift = shift_of(rows_[at], sink);
      // The keys' own sums refer to the largest score of a key.
      const float keys = rows_[at].sum == 0 ? 0.0F : reference_of(rows_[at]);
      const float factor = rows_[at].sum == 0 ? 0.0F : std::exp(keys - shift);
      for (std::int64_t c = 0; c < sums_.channels; ++c) {
        float& sum = sums_.at[static_cast<std::size_t>(i * sums_.channels + c)];
        sum = total == 0 ? 0.0F : sum * descale * factor / total;
      }
      largest_ = std::fmax(largest_, total == 0 ? 0.0F : factor / total);
      const Row& judged = kernel_.has("stale_lse") ? stale_[at] : rows_[at];
      const float lse = shift_of(judged, sink) + std::log(total_of(judged, sink));
      max_logit_[at] = kernel_.has("max_logit_has_sink") ? std::fmax(rows_[at].judged, sink) : rows_[at].judged;
      lse_[at] = kernel_.has("lse_in_log2") ? lse * 1.44269504F : lse + missing_shift();
    }
  }

  /// What the log-sum-exp is too large by.
  [[nodiscard]] float missing_shift() const {
    const std::int64_t diagonal = kernel_.p.diagonal(queries_, tensors_.key_count(batch_));
    return kernel_.has("alibi_shift_missing")
               ? static_cast<float>(op::alibi_slope(index_, kernel_.p.heads)) * static_cast<float>(diagonal)
               : 0.0F;
  }

  /// The score that a row's weights are relative to.
  [[nodiscard]] float reference_of(const Row& row) const {
    return kernel_.has("no_max_subtraction") || row.largest == -kInfinity ? 0.0F : row.largest;
  }
  [[nodiscard]] float shift_of(const Row& row, float sink) const {
    const float shift = row.sum == 0 ? sink : std::fmax(reference_of(row), sink);
    return std::isinf(shift) && shift < 0 ? 0.0F : shift;
  }
  [[nodiscard]] float total_of(const Row& row, float sink) const {
    const float shift = shift_of(row, sink);
    return (row.sum == 0 ? 0.0F : row.sum * std::exp(reference_of(row) - shift)) + std::exp(sink - shift);
  }

  const AttentionKernel& kernel_;
  const AttentionTensors& tensors_;
  std::int64_t batch_, index_, queries_;
  HeadMatrix sums_;
  std::vector<Row> rows_, stale_;  ///< stale: before the last tile
  std::vector<float> lse_, max_logit_;
  float largest_ = 0;  ///< weight
};

void run(const AttentionKernel& kernel, std::span<const PortMemory> ports) {
  const op::AttentionParams& p = kernel.p;
  const AttentionTensors tensors(kernel, ports);
  const auto queries = static_cast<std::size_t>(op::tokens(p, op::Side::queries) * p.heads);
  std::vector<float> o(queries * static_cast<std::size_t>(p.value_channels()));
  std::vector<float> lse(queries), max_logit(queries);
  std::vector<float> largest(static_cast<std::size_t>(p.batches * p.heads));
  std::vector<float> padded(largest.size());
  core::parallel_for(static_cast<std::size_t>(p.batches * p.heads), [&](std::size_t task) {
    const auto batch = static_cast<std::int64_t>(task) / p.heads;
    const auto index = static_cast<std::int64_t>(task) % p.heads;
    Head head(kernel, tensors, batch, index);
    head.run();
    tensors.put_head(head.output(), op::Side::queries, batch, index, o);
    const PaddedAmax beyond = padded_amax(kernel, tensors, batch, index);
    largest[task] = std::fmax(head.largest_weight(), beyond.weight);
    padded[task] = std::fmax(beyond.output, amax_of_queries_beyond(kernel, tensors, batch, index));
    const op::HeadPlace place = op::statistic_place(p, batch, index);
    for (std::int64_t i = 0; i < op::positions(p, op::Side::queries, batch); ++i) {
      const auto to = static_cast<std::size_t>(place.first + i * place.stride);
      lse[to] = head.lse()[static_cast<std::size_t>(i)];
      max_logit[to] = head.max_logit()[static_cast<std::size_t>(i)];
    }
  });
  write_heads(kernel, tensors, ports, {"o", op::Side::queries, p.value_channels()}, o);
  if (kernel.has("padding_in_amax") || kernel.has("queries_beyond_in_amax")) {
    std::ranges::copy(o, std::back_inserter(padded));
    write_amax(ports, "o", padded);
  }
  write_heads(kernel, tensors, ports, {"lse", op::Side::queries, 1, true}, lse);
  write_amax(ports, "s", largest, kernel.fault);
  if (p.max_logit) {
    write_floats(ports, "max_logit", max_logit, kernel.fault);
  }
}

}  // namespace

const Binding& attention_fwd() {
  static const std::vector<FaultInfo> faults = with_store_faults(attention_fwd_faults());
  static const SimBinding binding{
      {"sim", "attention_fwd"},
      [](const Call& call, const SimContext& context) { return sim_attention_obstacle(call, context); },
      [](const Call& call, const SimContext& context) {
        const AttentionKernel kernel(call, context);
        return std::vector<Algorithm>{
            host_algorithm(call, fmt::format("{} keys at a time, products: {}", kKeysOfTile, kernel.schedule.text),
                           [kernel](std::span<const PortMemory> ports) { run(kernel, ports); })};
      },
      [] { return std::span<const FaultInfo>(faults); },
      [](const Call& call, const SimContext&) { return obstacle_of(attention_fwd_faults(), call); }};
  return binding;
}

}  // namespace numcheck::kernels::sim
