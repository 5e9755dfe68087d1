// Scales of many FP8 tensors from their amaxes, in one call.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `multi_tensor_scale`, the update of FP8 weights' scales beside an optimiser's step: for every amax of every tensor,
/// MAX = 448 or 57344 the largest number of the format,
///
///   a         = max(amax, epsilon)            in FP32
///   scale     = 1                             if a is 0, infinite or NaN
///               RN32(MAX / a)                 otherwise; FLT_MAX if that overflows
///               its mantissa cleared          with power_of_two, so that it is rounded down
///   scale_inv = RN32(1 / scale)
///
/// Tensors have `elements` amaxes each, one, or one per block, and are worked through in chunks, of which a launch takes up to 320 of
/// up to 48 tensors. Ports: amaxes, scales, scale_invs [tensors, elements], FP32; draws of amaxes count by their magnitude. Defined
/// bit for bit, but for subnormal numbers: TransformerEngine compiles this kernel so that they are flushed to 0. A subnormal a may
/// count as 0, so that scale and scale_inv are 1, and a subnormal scale_inv may be 0.
/// Source: TransformerEngine multi_tensor.h, nvte_multi_tensor_compute_scale_and_scale_inv_cuda;
/// common/multi_tensor/compute_scale.cu, common/recipe/recipe_common.cuh.
struct MultiTensorScaleParams {
  std::int64_t tensors = 0;
  std::int64_t elements = 1;
  std::int64_t chunk = 65536;
  std::string format = "fp8_e4m3";  ///< fp8_e4m3 | fp8_e5m2
  double epsilon = 0;               ///< an FP32 number
  bool power_of_two = false;

  template <class V>
  void describe(V& v) {
    constexpr double kMostTensors = 4096, kMostElements = 1 << 24;
    v.integer("tensors", "t", tensors,
              {.minimum = 0, .maximum = kMostTensors, .required = true, .doc = "tensors in one call"});
    v.integer("elements", "n", elements, {.minimum = 0, .maximum = kMostElements, .doc = "amaxes of a tensor"});
    v.integer("chunk", "ch", chunk,
              {.minimum = 1, .maximum = 1 << 24, .doc = "amaxes that a block of threads takes", .storage_only = true});
    v.choice("format", "f", format, {"fp8_e4m3", "fp8_e5m2"}, "format that the scales are for");
    v.number("epsilon", "eps", epsilon, {.minimum = 0, .maximum = 1e30, .doc = "least amax that a scale follows from"});
    v.boolean("power_of_two", "p2", power_of_two, "scales are rounded down to powers of two");
  }
};

/// The descriptor of `multi_tensor_scale`.
[[nodiscard]] const Op& multi_tensor_scale();

}  // namespace numcheck::op
