// Casts to and from FP8 and FP4, with one scale per tensor or per block.
#pragma once

#include <cstdint>
#include <string>

#include "op/block_scaling.hpp"
#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `quantize`: x [rows, cols] to codes of `format`. With the recipe `tensor`:
///
///   q_ij    = RN(sat(RN32(x_ij scale)))          nearest even; +-max instead of infinity beyond the largest number
///   q_t_ji  = q_ij                               with layout both or columnwise
///   amax    = max |x_ij|, NaN dropped
///   scale_inv = RN32(1 / scale)
///
/// Ports: x, scale [1, 1] (derived: the parameter, or from amax(x) as in current scaling), q [rows, cols],
/// q_t [cols, rows], amax [1, 1], scale_inv [1, 1].
///
/// The scale of current scaling, and with the block recipes that of every block, follows from its amax a:
///
///   a     = max(amax, epsilon)                   in FP32
///   scale = RN32(max / a)                        max: largest number of the format; 1 if a is 0 or infinite
///           if that overflows: FLT_MAX, of blocks the largest number of x's format
///           with power_of_two its mantissa is cleared, so that it is rounded down
///
/// With `mxfp8` it is a power of two, 2^(127 - e), of which e is stored as E8M0:
///
///   up      e = RU(RN32(amax RN32(1 / max)))     TransformerEngine's: no code saturates
///   floor   e = 127 + floor(log2 amax) - emax    OCP MX 1.0: emax = floor(log2 max), codes of up to 2 max saturate
///
/// within 0 (also for an amax of 0) to 254 (also for infinity). The rules of `nvfp4` are in nvfp4.hpp, and layouts and ports of all
/// block recipes in block_scaling.hpp;
/// row-wise and column-wise codes are both made from x. Every output is defined bit for bit; padding of scales is not
/// written.
/// Source: TransformerEngine cast.h, common/util/vectorized_pointwise.h, common/recipe/recipe_common.cuh,
/// common/transpose/quantize_transpose_{vector,square}_blockwise.cu, common/cast/mxfp8/quantize_mxfp8.cuh.
struct QuantizeParams {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string format = "fp8_e4m3";          ///< fp8_e4m3 | fp8_e5m2; nvfp4: fp4_e2m1
  std::string layout = "rowwise";           ///< rowwise | columnwise | both
  double scale = 0;                         ///< tensor; 0: from amax(x)
  std::string recipe = "tensor";            ///< tensor | block_1x128 | block_128x128 | mxfp8 | nvfp4
  double epsilon = 0;                       ///< of scales that follow from an amax: an FP32 number
  std::string power_of_two = "default";     ///< default (blocks: on, tensor: off) | on | off
  std::string scale_layout = "gemm_ready";  ///< block_1x128: gemm_ready | compact
  std::string rounding = "up";              ///< mxfp8: up | floor
  std::string block_shape = "1x16";         ///< nvfp4: 1x16 | 16x16
  bool stochastic = false;                  ///< nvfp4: codes are rounded at random
  std::int64_t rng_seed = 1;                ///< of the device's generator
  bool hadamard = false;                    ///< nvfp4: columns are transformed first

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 24;
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "rows of x"});
    v.integer("cols", "c", cols, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "columns of x"});
    v.choice("format", "f", format, {"fp8_e4m3", "fp8_e5m2", "fp4_e2m1"}, "format of the codes");
    v.choice("layout", "lay", layout, {"rowwise", "columnwise", "both"},
             "what is written: the codes, their transpose, or both", true);
    v.number("scale", "s", scale,
             {.minimum = 0, .maximum = 1e30, .doc = "quantising scale; 0: from max |x|, as in current scaling"});
    v.choice(
        "recipe", "rec", recipe, {"tensor", "block_1x128", "block_128x128", "mxfp8", "nvfp4"},
        "which elements share a scale: all, 128 of a row or column, 128 x 128, 32 with a power of two, or 16 in FP4");
    v.number("epsilon", "eps", epsilon,
             {.minimum = 0, .maximum = 1e30, .doc = "least amax that a scale follows from; not of mxfp8 and nvfp4"});
    v.choice(
        "power_of_two", "p2", power_of_two, {"default", "on", "off"},
        "whether scales are rounded down to powers of two; by default those of blocks are, as TransformerEngine's");
    v.choice("scale_layout", "sl", scale_layout, {"gemm_ready", "compact"},
             "block_1x128: scales as matrix products read them, or as their blocks lie in x, without padding");
    v.choice("rounding", "rnd", rounding, {"up", "floor"},
             "mxfp8: scales are rounded up, as TransformerEngine does, or follow from floor(log2 amax), as in OCP MX");
    v.choice("block_shape", "bs", block_shape, {"1x16", "16x16"},
             "nvfp4: whether a scale follows from 16 elements of a row or column, or from 16 x 16, as of weights");
    v.boolean("stochastic", "sr", stochastic,
              "nvfp4: codes are rounded up or down at random, as of gradients: judged by how often they are");
    v.integer("rng_seed", "rs", rng_seed,
              {.minimum = 0, .maximum = 1e15, .doc = "seed of the device's generator, for stochastic rounding"});
    v.boolean("hadamard", "rht", hadamard,
              "nvfp4, BF16: columns go through a random Hadamard transform before they are quantised, as for weight "
              "gradients");
  }

  [[nodiscard]] bool has_power_of_two() const {
    return power_of_two == "on" || (power_of_two == "default" && recipe.starts_with("block_"));
  }
  [[nodiscard]] BlockLayout rowwise() const {
    return rowwise_blocks(quantize_recipe(recipe), scale_layout == "compact", rows, cols);
  }
  [[nodiscard]] BlockLayout columnwise() const {
    return columnwise_blocks(quantize_recipe(recipe), scale_layout == "compact", rows, cols);
  }
  /// Those of the case. Precondition: recipe is not tensor.
  [[nodiscard]] std::vector<BlockLayout> layouts() const;
};

/// Parameters of `dequantize`: y = RN(RN32(code scale_inv)), code an FP8 number of `format`, scale_inv that of the tensor
/// or of the code's block. With `nvfp4` y = RN(RN32(code RN32(RN32(scale_inv q_global_amax) RN32(1 / 2688)))).
/// Ports: q [rows, cols], q_scale_inv [1, 1] or as block_scaling.hpp has it, y [rows, cols] in the mode's format. With
/// blocks, q has the codes that the recipe gives for the draws of q, and q_scale_inv the scales for amaxes that are the draws of
/// q_scale_inv, so that the two are independent; q_global_amax, of nvfp4, is the magnitude of a draw, or 1. Defined bit for bit.
/// Source: TransformerEngine cast.h, nvte_dequantize; common/cast/mxfp8/dequantize_mxfp8.cuh,
/// common/cast/nvfp4/dequantize_nvfp4.cuh.
struct DequantizeParams {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string format = "fp8_e4m3";          ///< as that of quantize
  std::string recipe = "tensor";            ///< as that of quantize
  std::string layout = "rowwise";           ///< mxfp8: rowwise | columnwise
  std::string scale_layout = "gemm_ready";  ///< as that of quantize

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 24;
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "rows of q"});
    v.integer("cols", "c", cols, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "columns of q"});
    v.choice("format", "f", format, {"fp8_e4m3", "fp8_e5m2", "fp4_e2m1"}, "format of the codes");
    v.choice("recipe", "rec", recipe, {"tensor", "block_1x128", "block_128x128", "mxfp8", "nvfp4"},
             "which codes share a scale: all, 128 of a row, 128 x 128, 32 with a power of two, or 16 in FP4");
    v.choice("layout", "lay", layout, {"rowwise", "columnwise"},
             "mxfp8: whether the 32 codes that share a scale lie in a row or in a column");
    v.choice("scale_layout", "sl", scale_layout, {"gemm_ready", "compact"},
             "block_1x128: scales as matrix products read them, or as their blocks lie in q, without padding");
  }

  /// Codes and scales of the case; their ports are q and q_scale_inv. Precondition: recipe is not tensor.
  [[nodiscard]] BlockLayout blocks() const;
};

/// Parameters of `transpose`: y_ji = x_ij, bytes moved.
/// Source: TransformerEngine transpose.h, nvte_transpose.
struct TransposeParams {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string format = "default";  ///< default (the mode's) | fp8_e4m3 | fp8_e5m2

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 24;
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "rows of x"});
    v.integer("cols", "c", cols, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "columns of x"});
    v.choice("format", "f", format, {"default", "fp8_e4m3", "fp8_e5m2"}, "format of x; default is the mode's");
  }
};

[[nodiscard]] const Op& quantize();
[[nodiscard]] const Op& dequantize();
[[nodiscard]] const Op& transpose();

}  // namespace numcheck::op
