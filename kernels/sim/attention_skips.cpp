#include "kernels/sim/attention_skips.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/sim/tensor_io.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fp8.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::int64_t kRowsOfTile = 16;
constexpr std::int64_t kLostFrom = 64, kLostTo = 128;  // queries that get lost
constexpr std::int64_t kLacking = 16;                  // keys

bool loses(std::int64_t batch, std::int64_t head) {
  constexpr std::int64_t kHeads = 3;
  return (batch + head) % kHeads == 0;
}

/// Calls body(first element, elements) for every position of sequences without queries or without keys.
template <class Body>
void for_each_skipped(const AttentionKernel& kernel, const AttentionTensors& tensors, const HeadOutput& output,
                      const Body& body) {
  const op::AttentionParams& p = kernel.p;
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    if (tensors.key_count(batch) > 0 && tensors.query_count(batch) > 0) {
      continue;
    }
    for (std::int64_t head = 0; head < op::heads_of(p, output.side); ++head) {
      const op::HeadPlace place = output.statistic ? op::statistic_place(p, batch, head)
                                                   : op::head_place(p, output.side, batch, head, output.channels);
      for (std::int64_t i = 0; i < op::positions(p, output.side, batch); ++i) {
        body(place.first + i * place.stride, output.channels);
      }
    }
  }
}

/// Where an element of a port is, by its number in logical order.
std::byte* element_of(const PortMemory& memory, std::int64_t flat) {
  const op::Port& port = *memory.port;
  const std::int64_t row = flat / port.cols;
  const std::int64_t element = row / port.rows * port.batch_stride + row % port.rows * port.ld + flat % port.cols;
  return memory.data + port.offset_bytes + element * core::dtype_info(port.dtype).storage_bytes;
}

void write_others(const AttentionKernel& kernel, const AttentionTensors& tensors, std::span<const PortMemory> ports,
                  const HeadOutput& output, std::span<const float> values) {
  const PortMemory& memory = port_memory(ports, output.port);
  const auto width = static_cast<std::size_t>(core::dtype_info(memory.port->dtype).storage_bytes);
  std::vector<std::byte> before;
  for_each_skipped(kernel, tensors, output, [&](std::int64_t first, std::int64_t count) {
    const std::byte* from = element_of(memory, first);
    before.insert(before.end(), from, from + static_cast<std::size_t>(count) * width);
  });
  write_floats(ports, output.port, values, kernel.fault);
  const std::byte* next = before.data();
  for_each_skipped(kernel, tensors, output, [&](std::int64_t first, std::int64_t count) {
    std::memcpy(element_of(memory, first), next, static_cast<std::size_t>(count) * width);
    next += static_cast<std::size_t>(count) * width;
  });
}

}  // namespace

void write_heads(const AttentionKernel& kernel, const AttentionTensors& tensors, std::span<const PortMemory> ports,
                 const HeadOutput& output, std::span<const float> values) {
  const bool skips = kernel.has("empty_sequence_unwritten");
  if (skips && output.side == op::Side::keys && kernel.p.key_heads() < kernel.p.heads) {
    constexpr std::int64_t kPeriod = 7;
    std::vector<float> sums(values.begin(), values.end());
    for_each_skipped(kernel, tensors, output, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t at = first; at < first + count; ++at) {
        sums[static_cast<std::size_t>(at)] = static_cast<float>(1 + at % kPeriod);
      }
    });
    write_floats(ports, output.port, sums, kernel.fault);
  } else if (skips) {
    write_others(kernel, tensors, ports, output, values);
  } else {
    write_floats(ports, output.port, values, kernel.fault);
  }
}

void zero_half(const AttentionKernel& kernel, HeadMatrix& dq) {
  if (!kernel.has("dq_half_zero")) {
    return;
  }
  const std::int64_t beyond = dq.rows % kRowsOfTile;
  for (std::int64_t i = dq.rows - (beyond == kRowsOfTile - 1 ? 1 : beyond); i < dq.rows; ++i) {
    std::fill_n(dq.at.begin() + i * dq.channels + dq.channels / 2, dq.channels - dq.channels / 2, 0.0F);
  }
}

std::vector<float> without_lost(const AttentionKernel& kernel, std::int64_t batch, std::int64_t head,
                                std::span<const float> factors) {
  std::vector<float> kept(factors.begin(), factors.end());
  const op::AttentionParams& p = kernel.p;
  for (std::int64_t i = kLostFrom; kernel.has("queries_lost") && loses(batch, head) && i < std::min(kLostTo, p.sq);
       ++i) {
    std::fill_n(kept.begin() + i * p.sk, std::min(kLacking, p.sk), 0.0F);
  }
  return kept;
}

std::string needs_empty_sequence(const Call& call) {
  const auto p = op::from_params<op::AttentionParams>(call.c->params);
  const bool backward = call.c->op == &op::attention_bwd();
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    const bool has_queries = op::sequence_length(p, op::Side::queries, batch) > 0;
    const bool has_keys = op::sequence_length(p, op::Side::keys, batch) > 0;
    // Gradients of positions beyond the lengths are zero, but layout thd has no such positions.
    const bool has_rows = has_queries || has_keys || !p.is_ragged();
    if (backward ? has_rows && !(has_queries && has_keys) : has_queries && !has_keys) {
      return "";
    }
  }
  return backward ? "no sequence with rows in a tensor lacks queries or keys" : "no sequence has queries, but no keys";
}

std::string needs_partial_tile(const Call& call) {
  const auto p = op::from_params<op::AttentionParams>(call.c->params);
  const std::int64_t beyond = p.sq % kRowsOfTile;
  const bool lacks = (beyond >= 1 && beyond <= kRowsOfTile / 2) || beyond == kRowsOfTile - 1;
  return op::has_scales(*call.c->mode) && lacks && p.d > 1
             ? ""
             : "tensors have no scales, or no row of theirs is in the part of a tile that gets lost";
}

std::string needs_second_block(const Call& call) {
  const auto p = op::from_params<op::AttentionParams>(call.c->params);
  for (std::int64_t task = 0; task < p.batches * p.heads; ++task) {
    const std::int64_t batch = task / p.heads;
    const std::int64_t queries = op::sequence_length(p, op::Side::queries, batch),
                       keys = op::sequence_length(p, op::Side::keys, batch);
    const bool sees = queries > kLostFrom && p.visible(kLostFrom, queries, keys).begin < std::min(kLacking, keys);
    if (loses(batch, task % p.heads) && sees && keys > 2 * kLacking) {
      return "";
    }
  }
  return "no query beyond the 64th sees the first of many keys";
}

}  // namespace numcheck::kernels::sim
