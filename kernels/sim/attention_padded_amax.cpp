#include "kernels/sim/attention_padded_amax.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "op/attention_fp8.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::int64_t kQueries = 64, kKeys = 128;
constexpr std::int64_t kTile = 128;  ///< of queries; the last one is filled with zeros

std::int64_t end_of_tiles(std::int64_t queries) {
  return (queries + kTile - 1) / kTile * kTile;
}

std::int64_t first_padded(std::int64_t queries) {
  return (queries + kQueries - 1) / kQueries * kQueries;
}

std::int64_t whole_blocks(std::int64_t keys) {
  return std::max<std::int64_t>(keys - 1, 0) / kKeys * kKeys;
}

/// Of a sequence with so many keys, those over which query i, which is padding, is weighed: a mask that starts in the top left
/// corner leaves it the blocks before its tile.
std::int64_t weighed_keys(const op::AttentionParams& p, std::int64_t keys, std::int64_t i) {
  return p.mask == "padding_causal" ? std::min(whole_blocks(keys), i / kTile * kTile) : whole_blocks(keys);
}

/// Softmax in place; the largest weight.
float weigh(std::span<float> scores) {
  const float largest = *std::ranges::max_element(scores);
  float sum = 0;
  for (float& s : scores) {
    s = std::exp(s - largest);
    sum += s;
  }
  for (float& s : scores) {
    s /= sum;
  }
  return 1 / sum;
}

/// The largest output of a query of zeros, which weighs these keys alike, and a sink.
float mean_of_values(const AttentionTensors& tensors, std::int64_t batch, std::int64_t head, const op::KeyRange& keys) {
  const HeadMatrix v = tensors.values(batch, tensors.key_head(head)).rows_of(keys.begin, keys.end);
  const float weights = static_cast<float>(v.rows) + std::exp(tensors.sink(head));
  float largest = 0;
  for (std::int64_t c = 0; c < v.channels; ++c) {
    float sum = 0;
    for (std::int64_t j = 0; j < v.rows; ++j) {
      sum += v.row(j)[static_cast<std::size_t>(c)];
    }
    largest = std::fmax(largest, std::fabs(sum / weights * tensors.scales().v));
  }
  return largest;
}

struct Head {
  std::int64_t batch = 0, head = 0;
};

struct Queries {
  std::int64_t begin = 0, end = 0;
};

/// Lets these queries, over the first `keys` keys, count.
void weigh_queries(const AttentionKernel& kernel, const AttentionTensors& tensors, const Head& of,
                   const Queries& queries, std::int64_t keys, PaddedAmax& amax) {
  const std::int64_t of_keys = tensors.key_head(of.head);
  const HeadMatrix q = tensors.queries(of.batch, of.head).rows_of(queries.begin, queries.end);
  const HeadMatrix k = tensors.keys(of.batch, of_keys).rows_of(0, keys);
  const HeadMatrix v = tensors.values(of.batch, of_keys).rows_of(0, keys);
  std::vector<float> scores = kernel.product(q.at, k.transposed().at, q.rows, keys, q.channels);
  for (std::int64_t i = 0; i < q.rows; ++i) {
    const std::span<float> row(scores.data() + i * keys, static_cast<std::size_t>(keys));
    for (std::int64_t j = 0; j < keys; ++j) {
      float& s = row[static_cast<std::size_t>(j)];
      s = tensors.score(of.batch, of.head, queries.begin + i, j, s);
    }
    amax.weight = std::fmax(amax.weight, weigh(row));
    for (std::int64_t c = 0; c < v.channels; ++c) {
      float sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        sum += row[static_cast<std::size_t>(j)] * v.row(j)[static_cast<std::size_t>(c)];
      }
      amax.output = std::fmax(amax.output, std::fabs(sum * tensors.scales().v));
    }
  }
}

}  // namespace

PaddedAmax padded_amax(const AttentionKernel& kernel, const AttentionTensors& tensors, std::int64_t batch,
                       std::int64_t head) {
  PaddedAmax amax;
  const op::AttentionParams& p = kernel.p;
  const std::int64_t first = first_padded(tensors.query_count(batch)), end = end_of_tiles(p.sq);
  if (!kernel.has("padding_in_amax") || first >= end) {
    return amax;
  }
  const std::int64_t of_last = weighed_keys(p, tensors.key_count(batch), end - 1);
  if (first_padded(p.sq) < end && of_last > 0) {
    amax.weight = 1 / (static_cast<float>(of_last) + std::exp(tensors.sink(head)));
    amax.output = mean_of_values(tensors, batch, head, {0, of_last});
  }
  for (std::int64_t i = first; i < p.sq; i += kQueries) {
    if (const std::int64_t keys = weighed_keys(p, tensors.key_count(batch), i); keys > 0) {
      weigh_queries(kernel, tensors, {batch, head}, {i, std::min(i + kQueries, p.sq)}, keys, amax);
    }
  }
  return amax;
}

float amax_of_queries_beyond(const AttentionKernel& kernel, const AttentionTensors& tensors, std::int64_t batch,
                             std::int64_t head) {
  const op::AttentionParams& p = kernel.p;
  float amax = 0;
  if (!kernel.has("queries_beyond_in_amax")) {
    return amax;
  }
  for (std::int64_t i = p.sq; i % kTile != 0; ++i) {
    if (const op::KeyRange keys = p.visible(i, p.sq, p.sk); keys.begin < keys.end) {
      amax = std::fmax(amax, mean_of_values(tensors, batch, head, keys));
    }
  }
  return amax;
}

std::string needs_partial_queries(const Call& call) {
  const auto p = op::from_params<op::AttentionParams>(call.c->params);
  const bool partial = !p.has_lengths() && p.bias == "none" && p.sq % kTile != 0;
  return op::has_scales(*call.c->mode) && partial
             ? ""
             : "tensors have no scales, queries fill their tiles, or sequences have lengths or scores a bias";
}

std::string needs_padded_queries(const Call& call) {
  const auto p = op::from_params<op::AttentionParams>(call.c->params);
  std::string obstacle = "tensors have no scales, or no 64 queries are all padding beside more than 128 keys";
  if (!op::has_scales(*call.c->mode) || p.is_ragged() || !p.has_lengths()) {
    return obstacle;
  }
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    if (first_padded(op::sequence_length(p, op::Side::queries, batch)) < end_of_tiles(p.sq) &&
        weighed_keys(p, op::sequence_length(p, op::Side::keys, batch), end_of_tiles(p.sq) - 1) > 0) {
      return "";
    }
  }
  return obstacle;
}

}  // namespace numcheck::kernels::sim
