// How attention's gradients are computed in blocks of rows, and those in tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/parallel.hpp"
#include "reference/attention_tile.hpp"

namespace numcheck::reference {

/// Calls body for every tile's range of [0, length).
template <class Body>
void for_each_span(std::int64_t length, const Body& body) {
  for (std::int64_t begin = 0; begin < length; begin += kTile) {
    body(Positions{begin, std::min(begin + kTile, length)});
  }
}

/// How many tiles cover so many positions.
[[nodiscard]] inline std::int64_t spans_of(std::int64_t length) {
  return (length + kTile - 1) / kTile;
}

/// Positions of tile `number` of so many; empty beyond the end.
[[nodiscard]] inline Positions span_at(std::int64_t number, std::int64_t length) {
  return {std::min(number * kTile, length), std::min((number + 1) * kTile, length)};
}

/// What a tile shows to those who collect facts; nothing if there are none.
template <class Visit>
[[nodiscard]] GradientTile::Visit visitor(const AttentionGradients& g, const Visit& visit) {
  return g.values_only() ? GradientTile::Visit() : visit;
}

/// Calls body(head, block) for all blocks of these heads, in parallel.
template <class Body>
void for_each_block(const Positions& heads, std::int64_t length, const Body& body) {
  const std::int64_t blocks = spans_of(length);
  core::parallel_for(static_cast<std::size_t>(heads.size() * blocks), [&](std::size_t task) {
    const auto number = static_cast<std::int64_t>(task);
    body(heads.begin + number / blocks, number % blocks);
  });
}

}  // namespace numcheck::reference
