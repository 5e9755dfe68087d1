#include "op/swizzle_scales.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fp32_op.hpp"

namespace numcheck::kernels::sim {
namespace {

using P = op::SwizzleScalesParams;

constexpr std::int64_t kGroup = 32;  // lines whose scales are 16 bytes apart

P params_of(const Call& call) {
  return op::from_params<P>(call.c->params);
}

std::string needs_scales(const Call& call) {
  return op::port_named(call.ports, "scales").elements() == 0 ? "there are no scales" : "";
}

bool has_padding(const P& p) {
  return p.tiles() * P::kTileBytes > p.lines() * p.blocks();
}

std::string needs_padding(const Call& call) {
  const P p = params_of(call);
  return p.tiles() == 0 ? "there are no scales" : has_padding(p) ? "" : "128 x 4 scales fill all tiles";
}

std::string needs_groups(const Call& call) {
  const P p = params_of(call);
  return p.blocks() == 0 || p.lines() <= kGroup ? "there are 32 lines or fewer" : "";
}

std::string needs_tiles_both_ways(const Call& call) {
  const P p = params_of(call);
  const bool has = p.tiles_across() > 1 && p.tiles() > p.tiles_across();
  return has ? "" : "tiles lie in one row or one column";
}

std::string needs_lines_and_blocks(const Call& call) {
  const P p = params_of(call);
  return p.lines() > 1 && p.blocks() > 1 ? "" : "there is one line, or one block a line";
}

constexpr std::array kFaults = {
    OpFault{{"not_swizzled", "scales stay in the order of their rows"}, &needs_lines_and_blocks},
    OpFault{{"padding_unwritten", "padding of lines and blocks is not written"}, &needs_padding},
    OpFault{{"padding_repeats", "padding repeats the last line's and the last block's scales"}, &needs_padding},
    OpFault{{"tiles_transposed", "tiles with the same blocks lie one after another, not those with the same lines"},
            &needs_tiles_both_ways},
    OpFault{{"groups_reversed", "the four groups of 32 lines of a tile are in the opposite order"}, &needs_groups},
    OpFault{{"wrong_orientation", "the scales are read as if lines were blocks"}, &needs_lines_and_blocks},
    OpFault{{"next_block", "each block has the scale of the next one of its line"}, &needs_lines_and_blocks},
    OpFault{{"last_tile_missed", "the last tile is not written"}, &needs_scales},
};

/// Where the scale of a block of a line goes.
std::size_t place_of(const P& p, std::int64_t line, std::int64_t block, const std::string& fault) {
  const std::int64_t down = line / P::kTileLines, across = block / P::kTileBlocks;
  const std::int64_t tile =
      fault == "tiles_transposed" ? across * (p.tiles() / p.tiles_across()) + down : down * p.tiles_across() + across;
  const std::int64_t in_tile = line % P::kTileLines, which = block % P::kTileBlocks;
  if (fault == "not_swizzled") {
    return static_cast<std::size_t>(tile * P::kTileBytes + in_tile * P::kTileBlocks + which);
  }
  const std::int64_t group = in_tile / kGroup;
  const std::int64_t stored = fault == "groups_reversed" ? P::kTileLines / kGroup - 1 - group : group;
  return static_cast<std::size_t>(tile * P::kTileBytes + in_tile % kGroup * 16 + stored * P::kTileBlocks + which);
}

/// The scale that is read for a block of a line, which both exist.
float scale_of(const P& p, const std::vector<float>& scales, std::int64_t line, std::int64_t block,
               const std::string& fault) {
  const std::int64_t taken = fault == "next_block" ? (block + 1) % p.blocks() : block;
  const bool lines_are_inner = p.lines_are_inner() != (fault == "wrong_orientation");
  return scales[static_cast<std::size_t>(lines_are_inner ? taken * p.lines() + line : line * p.blocks() + taken)];
}

void run(const P& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> scales = read_floats(ports, "scales");
  std::vector<float> out = read_floats(ports, "swizzled");  // what is there before
  const std::int64_t lines = p.tiles() == 0 ? 0 : p.tiles() / p.tiles_across() * P::kTileLines;
  const std::int64_t missed = fault == "last_tile_missed" ? p.tiles() - 1 : p.tiles();
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t block = 0; block < p.tiles_across() * P::kTileBlocks; ++block) {
      const std::size_t at = place_of(p, line, block, fault);
      const bool is_padding = line >= p.lines() || block >= p.blocks();
      if ((is_padding && fault == "padding_unwritten") || static_cast<std::int64_t>(at) / P::kTileBytes >= missed) {
        continue;
      }
      const bool repeats = is_padding && fault == "padding_repeats";
      out[at] = is_padding && !repeats
                    ? 0
                    : scale_of(p, scales, std::min(line, p.lines() - 1), std::min(block, p.blocks() - 1), fault);
    }
  }
  write_floats(ports, "swizzled", out, fault);
}

}  // namespace

const Binding& swizzle_scales() {
  return fp32_op<P, kFaults, &run>("swizzle_scales");
}

}  // namespace numcheck::kernels::sim
