#include "op/attention_dropout.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "core/rng.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fp32_op.hpp"

namespace numcheck::kernels::sim {
namespace {

using op::AttentionDropoutParams;

AttentionDropoutParams params_of(const Call& call) {
  return op::from_params<AttentionDropoutParams>(call.c->params);
}

std::string needs_nothing(const Call&) {
  return {};
}
std::string needs_heads(const Call& call) {
  return params_of(call).heads > 1 ? "" : "there is one head";
}
std::string needs_sequences(const Call& call) {
  return params_of(call).batches > 1 ? "" : "there is one sequence";
}
std::string needs_queries(const Call& call) {
  return params_of(call).sq > 1 ? "" : "there is one query";
}
std::string needs_keys(const Call& call) {
  return params_of(call).sk > 1 ? "" : "there is one key";
}

constexpr std::size_t kPeriod = 5003;  // no multiple of a row or a head
constexpr std::size_t kDistance = 8;
constexpr std::int64_t kTile = 16;

std::string needs_two_periods(const Call& call) {
  const AttentionDropoutParams p = params_of(call);
  const auto weights = static_cast<double>(p.batches * p.heads) * static_cast<double>(p.sq * p.sk);
  return weights >= 2 * kPeriod ? "" : "the generator does not start again within so few weights";
}
std::string needs_queries_of_one_draw(const Call& call) {
  return params_of(call).sq > 2 ? "" : "no queries are two apart";
}
std::string needs_distant_keys(const Call& call) {
  return params_of(call).sk > static_cast<std::int64_t>(kDistance) ? "" : "no keys are eight apart";
}

constexpr std::int64_t kRepeatedTile = 64;

std::string needs_two_heads(const Call& call) {
  const AttentionDropoutParams p = params_of(call);
  return p.batches * p.heads > 1 ? "" : "there is one head";
}
std::string needs_two_tiles(const Call& call) {
  const AttentionDropoutParams p = params_of(call);
  if (std::min(p.sq, p.sk) < kRepeatedTile) {
    return "there are no 64 queries and 64 keys";
  }
  const std::int64_t tiles = p.batches * p.heads * (p.sq / kRepeatedTile) * (p.sk / kRepeatedTile);
  return tiles > 1 ? "" : "there is one tile of 64 queries and 64 keys";
}
std::string needs_squares(const Call& call) {
  const AttentionDropoutParams p = params_of(call);
  return p.sq == p.sk ? needs_two_heads(call) : "there are not as many queries as keys";
}

std::string needs_a_tile(const Call& call) {
  const AttentionDropoutParams p = params_of(call);
  return std::min(p.sq, p.sk) >= kTile ? "" : "there are no 16 queries and 16 keys";
}

constexpr std::array kFaults = {
    OpFault{{"nothing_dropped", "every weight is kept"}, &needs_nothing},
    OpFault{{"share_half", "half as many weights are dropped as requested"}, &needs_nothing},
    OpFault{{"mask_inverted", "kept and dropped are swapped"}, &needs_nothing},
    OpFault{{"mask_scaled", "kept weights have 1 / (1 - dropout) in place of 1"}, &needs_nothing},
    OpFault{{"heads_alike", "all heads have the same mask"}, &needs_heads},
    OpFault{{"sequences_alike", "all sequences have the same masks"}, &needs_sequences},
    OpFault{{"queries_alike", "all queries of a head have the same mask"}, &needs_queries},
    OpFault{{"key_pairs_alike", "two neighbouring keys are kept or dropped together"}, &needs_keys},
    OpFault{{"draws_restart", "the generator starts again after 5003 weights"}, &needs_two_periods},
    OpFault{{"draws_used_twice", "a draw decides about two keys that are eight apart"}, &needs_distant_keys},
    OpFault{{"draws_used_four_times", "a draw decides about four of eight queries, which are two apart"},
            &needs_queries_of_one_draw},
    OpFault{{"tile_dropped", "the first 16 queries and 16 keys of the first head are dropped"}, &needs_a_tile},
    OpFault{{"row_repeated", "the last query of the last head has the mask of that of the first head"},
            &needs_two_heads},
    OpFault{{"tile_repeated", "the last tile of 64 x 64 has the mask of the first one"}, &needs_two_tiles},
    OpFault{{"head_transposed", "the last head has the mask of the first one with queries and keys swapped"},
            &needs_squares},
};

bool is_in_first_tile(const AttentionDropoutParams& p, std::size_t at) {
  const auto weight = static_cast<std::int64_t>(at);
  return weight / p.sk < kTile && weight % p.sk < kTile;
}

/// Of faults in the last head, the weight of the first head whose random number decides about this one.
std::size_t draw_of_first_head(const AttentionDropoutParams& p, std::size_t at, const std::string& fault) {
  const std::int64_t head = p.sq * p.sk, last = (p.batches * p.heads - 1) * head;
  const std::int64_t weight = static_cast<std::int64_t>(at) - last, i = weight / p.sk, j = weight % p.sk;
  const std::int64_t first_query = (p.sq / kRepeatedTile - 1) * kRepeatedTile,
                     first_key = (p.sk / kRepeatedTile - 1) * kRepeatedTile;
  if (weight < 0) {
    return at;
  }
  if (fault == "head_transposed") {
    return static_cast<std::size_t>(j * p.sk + i);
  }
  if (fault == "row_repeated") {
    return static_cast<std::size_t>(i == p.sq - 1 ? weight : static_cast<std::int64_t>(at));
  }
  const bool is_in_tile =
      first_query <= i && i < first_query + kRepeatedTile && first_key <= j && j < first_key + kRepeatedTile;
  return is_in_tile ? static_cast<std::size_t>((i - first_query) * p.sk + j - first_key) : at;
}

/// The weight whose random number decides about this one.
std::size_t draw_of(const AttentionDropoutParams& p, std::size_t at, const std::string& fault) {
  const auto keys = static_cast<std::size_t>(p.sk), queries = static_cast<std::size_t>(p.sq);
  const auto heads = static_cast<std::size_t>(p.heads);
  if (fault == "key_pairs_alike") {
    return at - at % keys % 2;
  }
  if (fault == "draws_restart") {
    return at % kPeriod;
  }
  if (fault == "draws_used_twice") {
    return at % keys / kDistance % 2 == 1 ? at - kDistance : at;
  }
  if (fault == "draws_used_four_times") {
    const std::size_t query = at / keys % queries;
    return at - (query % 8 - query % 2) * keys;
  }
  if (fault == "queries_alike") {
    return at / (keys * queries) * (keys * queries) + at % keys;
  }
  if (fault == "row_repeated" || fault == "tile_repeated" || fault == "head_transposed") {
    return draw_of_first_head(p, at, fault);
  }
  return fault == "heads_alike"       ? at % (keys * queries)
         : fault == "sequences_alike" ? at % (keys * queries * heads)
                                      : at;
}

/// Uniform in [0, 1).
double uniform(std::int64_t seed, std::size_t draw) {
  constexpr std::size_t kWords = 4;  // of a block
  const std::uint64_t block = draw / kWords;
  const auto key = static_cast<std::uint64_t>(seed);
  const core::PhiloxCounter words =
      core::philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32U), 0, 0},
                       {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32U)});
  return static_cast<double>(words.at(draw % kWords)) * 0x1p-32;
}

void run(const AttentionDropoutParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  constexpr std::size_t kChunk = std::size_t{1} << 14;
  std::vector<float> mask(static_cast<std::size_t>(p.batches * p.heads * p.sq * p.sk));
  const double dropout = fault == "nothing_dropped" ? 0 : fault == "share_half" ? p.dropout / 2 : p.dropout;
  const float kept = fault == "mask_scaled" ? static_cast<float>(p.keep_scale()) : 1;
  core::parallel_chunks(mask.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; ++at) {
      const bool drops =
          uniform(p.rng_seed, draw_of(p, at, fault)) < dropout || (fault == "tile_dropped" && is_in_first_tile(p, at));
      mask[at] = drops != (fault == "mask_inverted") ? 0 : kept;
    }
  });
  write_floats(ports, "dropout_mask", mask, fault);
}

}  // namespace

const Binding& attention_dropout() {
  return fp32_op<AttentionDropoutParams, kFaults, &run>("attention_dropout");
}

}  // namespace numcheck::kernels::sim
