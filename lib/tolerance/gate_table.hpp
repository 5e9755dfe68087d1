// The gates: their names, what they measure, and what they catch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace numcheck::tolerance {

enum class Gate : std::uint8_t {
  pattern,
  unwritten,
  guards,
  determinism,
  precision_class,
  exact,
  bound,
  rms,
  quantile,
  largest,
  slope,
  flips,
  rounding_element,
  lattice,
  homogeneity,
  block_slope,
  line_factor,
  replayed_scale,
  replayed_amax,
  block_rms,
  block_largest,
  amax_of_all,
  allclose,
  max_ulp,
  rel_l2,
};

struct GateInfo {
  Gate gate;
  std::string_view name;      ///< as reports name it: "G1 bound"
  std::string_view measures;  ///< the statistic
  std::string_view limit;     ///< the rule
  std::string_view catches;   ///< faults that it is there for
};

/// All gates, in the order in which they are judged.
[[nodiscard]] std::span<const GateInfo> gate_table() noexcept;

[[nodiscard]] std::string_view gate_name(Gate gate) noexcept;

}  // namespace numcheck::tolerance
