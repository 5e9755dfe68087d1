// A series of steps of an FP8 scaling recipe: the scales that follow from the amaxes of earlier steps.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `fp8_recipe`: `steps` updates of delayed scaling, of `modules` groups of `tensors` tensors each. In step t
/// the scale s_t of a tensor is used, and then updated:
///
///   h[0]   = amax_t                                      as the casts of the step leave it
///   last   = reduced_t if kernel is after_reduction and reduced_t != 0, else h[0]
///   M      = max(last, h[1] .. h[L-1]), NaN dropped      with most_recent: last
///   h'     = 0, h[2] .. h[L-1], last                     L = 1: 0
///   s_t+1  = target / M if 0 < M < infinity, else s_t;   FLT_MAX if that is infinite
///   target = RN32(MAX RN32(2^-margin))                   MAX = 448 or 57344
///
/// With after_reduction a tensor whose `last` is 0 keeps its history and its scale (its module did not run); with single its
/// history is rolled and its scale kept. Quotients are FP32, to nearest even. The course says how amaxes change over the
/// steps; they are draws' magnitudes times its level:
///
///   steady                 1
///   drifting               falls evenly by powers of two, from 1 to 2^-12
///   spiking                1, but 2^10 in step floor(steps / 4)
///   vanishing              falls evenly by powers of two, from 1 to 2^-168: quotients overflow, then amaxes underflow to 0
///   special                1, but of 16 amaxes on average 4 are 0, and one each a subnormal, infinity, NaN, the largest
///                          FP32 number and one whose quotient overflows
///   restart_with_state     2^-10; history and scale are those that an earlier series of this level left
///                          (with L = 1 the scale for an amax of 2^-10)
///   restart_without_state  2^-10; the history is empty and the scale 1
///   calibration            2^-10; of tensors with even numbers, calibrating left an amax in h[0], which the first step raises,
///                          but the scale is 1. Those with odd numbers stand for gradients, which are not calibrated
///
/// The other courses begin with an empty history and scale 1.
///
/// Ports: history [modules, L, tensors] (derived), scale [modules, tensors] (computed from it), amaxes (derived) and, with
/// after_reduction, reduced (derived: the larger amax of two ranks, or with one rank the same) [steps, modules tensors];
/// scales [steps + 1, modules tensors], whose last row is s_t after the last step, scale_invs = RN32(1 / s_t) [steps, modules
/// tensors], and new_history. All are FP32, and every output is defined bit for bit.
/// Source: TransformerEngine recipe.h; common/recipe/delayed_scaling.cu.
struct Fp8RecipeParams {
  std::int64_t steps = 0;
  std::int64_t tensors = 0;
  std::int64_t modules = 1;
  std::int64_t history = 1024;    ///< L
  std::string algorithm = "max";  ///< max | most_recent
  std::int64_t margin = 0;
  std::string format = "fp8_e4m3";  ///< fp8_e4m3 | fp8_e5m2
  std::string kernel = "single";    ///< single | after_reduction
  std::string course = "steady";
  bool second_rank = false;

  template <class V>
  void describe(V& v) {
    constexpr double kMostMargin = 160;  // 2^-margin is 0 or infinite beyond it
    constexpr double kMost = 1 << 20;
    v.integer("steps", "st", steps, {.minimum = 0, .maximum = kMost, .required = true, .doc = "updates"});
    v.integer("tensors", "t", tensors,
              {.minimum = 0, .maximum = kMost, .required = true, .doc = "tensors of a module, each with its scale"});
    v.integer("modules", "mod", modules,
              {.minimum = 1, .maximum = 1 << 16, .doc = "groups of tensors that are updated together"});
    v.integer("history", "h", history,
              {.minimum = 1, .maximum = kMost, .doc = "amaxes that are remembered of a tensor"});
    v.choice("algorithm", "alg", algorithm, {"max", "most_recent"}, "which amax of the history the scale is for");
    v.integer("margin", "mar", margin,
              {.minimum = -kMostMargin, .maximum = kMostMargin, .doc = "scales are 2^margin times smaller"});
    v.choice("format", "f", format, {"fp8_e4m3", "fp8_e5m2"}, "format that the scales are for");
    v.choice("kernel", "ker", kernel, {"single", "after_reduction"},
             "which update: of one module, or of all at once with amaxes that were reduced over ranks");
    v.choice("course", "crs", course,
             {"steady", "drifting", "spiking", "vanishing", "special", "restart_with_state", "restart_without_state",
              "calibration"},
             "how amaxes change over the steps, and what state the series begins with");
    v.boolean("second_rank", "rk2", second_rank, "another rank's amaxes are reduced, too; only with after_reduction");
  }

  [[nodiscard]] bool reduces() const noexcept { return kernel == "after_reduction"; }
  [[nodiscard]] std::int64_t scales() const noexcept { return modules * tensors; }
};

/// The descriptor of `fp8_recipe`.
[[nodiscard]] const Op& fp8_recipe();

}  // namespace numcheck::op
