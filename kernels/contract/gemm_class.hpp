// What distinguishes the products that one kernel computes, beyond its configuration.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "kernels/contract/backend.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"

namespace numcheck::kernels {

/// Formats, layout, what is added and done after the sum, and how k ends: the largest power of two that divides the
/// rest of k beyond whole tiles (0: there is no rest), and whether the slices of a split get equally many tiles. Two
/// products with equal classes and the same kernel take the same paths through it, as far as k decides them.
[[nodiscard]] inline std::string gemm_class(const Call& call, std::int64_t k_tile, std::int64_t slices) {
  const auto p = op::from_params<op::GemmParams>(call.c->params);
  const std::int64_t rest = p.k % k_tile;
  const std::int64_t tiles = (p.k + k_tile - 1) / k_tile;
  return fmt::format("{} {} {}{}{}{}{}{}{}{} rest {}{}", call.c->mode->name, p.output, p.trans_a ? 'T' : 'N',
                     p.trans_b ? 'T' : 'N',
                     p.beta == 0  ? ""
                     : p.in_place ? " in place"
                                  : " C",
                     p.bias ? " bias" : "", p.epilogue == "none" ? "" : " " + p.epilogue, p.batch > 1 ? " batch" : "",
                     p.accumulate == "default" ? "" : " " + p.accumulate, p.scaling == "tensor" ? "" : " " + p.scaling,
                     rest & -rest, tiles % slices == 0 ? "" : " uneven");
}

}  // namespace numcheck::kernels
