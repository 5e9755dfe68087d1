#include "op/swizzle_scales.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "reference/exact_output.hpp"
#include "reference/mistake_list.hpp"
#include "reference/references.hpp"
#include "reference/scrambled.hpp"

namespace numcheck::reference {
namespace {

using P = op::SwizzleScalesParams;

/// What a byte of a tile holds: the l-th of its lines, the i-th of their blocks.
struct Place {
  std::int64_t line, block;
};

Place place_in_tile(std::int64_t byte) {
  constexpr std::int64_t kGroup = 32, kLineBytes = 16;
  const std::int64_t rest = byte % kLineBytes;
  return {byte / kLineBytes + kGroup * (rest / P::kTileBlocks), rest % P::kTileBlocks};
}

/// Scales stay in their order: tiles of 128 lines of 4.
Place place_in_order(std::int64_t byte) {
  return {byte / P::kTileBlocks, byte % P::kTileBlocks};
}

op::Values moved(const op::ReferenceRequest& request, Place (*place)(std::int64_t)) {
  const auto p = op::from_params<P>(*request.params);
  const op::Operand& scales = op::operand_named(request.inputs, "scales");
  op::OutputValues out = exact_output("swizzled", static_cast<std::size_t>(p.tiles() * P::kTileBytes));
  core::parallel_for(static_cast<std::size_t>(p.tiles()), [&](std::size_t number) {
    const auto tile = static_cast<std::int64_t>(number);
    for (std::int64_t byte = 0; byte < P::kTileBytes; ++byte) {
      const Place in_tile = place(byte);
      const std::int64_t line = tile / p.tiles_across() * P::kTileLines + in_tile.line;
      const std::int64_t block = tile % p.tiles_across() * P::kTileBlocks + in_tile.block;
      const bool is_padding = line >= p.lines() || block >= p.blocks();
      const std::int64_t at = p.lines_are_inner() ? block * p.lines() + line : line * p.blocks() + block;
      out.value[static_cast<std::size_t>(tile * P::kTileBytes + byte)] = is_padding ? 0 : scales.data[at];
    }
  });
  op::Values result;
  result.outputs.push_back(std::move(out));
  return result;
}

op::Values values(const op::ReferenceRequest& request) {
  return moved(request, &place_in_tile);
}

op::Values values_in_order(const op::ReferenceRequest& request) {
  return moved(request, &place_in_order);
}

std::vector<op::Mistake> mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<P> list(params);
  list.add_instead("not_swizzled", "scales in the order of tiles from scales in that of rows", &values_in_order);
  return list.take();
}

void derive(const op::DeriveRequest&, std::span<double> values) {
  constexpr int kTopByte = 56;
  core::parallel_chunks(values.size(), std::size_t{1} << 16, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      values[i] = static_cast<double>(scrambled(values[i], i) >> kTopByte);
    }
  });
}

}  // namespace

op::Reference swizzle_scales_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.derive = &derive;
  reference.mistakes = &mistakes;
  reference.version = "swizzle_scales-1";
  reference.defines_bits = true;
  return reference;
}

}  // namespace numcheck::reference
