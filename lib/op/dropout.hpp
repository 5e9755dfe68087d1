// Dropout, forward and backward.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `dropout_fwd` and `dropout_bwd`. With one mask bit per element, 1 = kept, eight to a byte, the first
/// in the lowest bit:
///
///   forward   mask_i random, P(dropped) = floor(256 p) / 256;  y_i = mask_i ? x_i / (1 - p) : 0
///   backward  dx_i = mask_i ? dy_i / (1 - p) : 0
///
/// The random bits are the device's own choice: y is judged against the mask that came with it, and the mask by the
/// share of dropped elements and by the correlation of neighbours. Note that kept elements are scaled by the exact
/// 1 / (1 - p), so that the mean of y is off by the factor (1 - floor(256 p) / 256) / (1 - p).
/// Ports: x [1, elements], y, mask [1, elements / 8] (uint8; derived in backward); elements is a multiple of 16.
/// Source: TransformerEngine dropout.h, common/dropout/dropout.cu.
struct DropoutParams {
  std::int64_t elements = 0;
  double p = 0.1;
  std::int64_t rng_seed = 1;

  template <class V>
  void describe(V& v) {
    v.integer("elements", "n", elements,
              {.minimum = 0, .maximum = 1e12, .required = true, .doc = "elements of x, a multiple of 16"});
    v.number("p", "p", p, {.minimum = 0, .maximum = 0.996, .doc = "probability that an element is dropped"});
    v.integer("rng_seed", "rs", rng_seed, {.minimum = 0, .maximum = 1e15, .doc = "seed of the device's generator"});
  }

  /// P(dropped) as implemented.
  [[nodiscard]] double dropped_share() const noexcept {
    return static_cast<double>(static_cast<std::int64_t>(256 * p)) / 256;
  }
};

[[nodiscard]] const Op& dropout_fwd();
[[nodiscard]] const Op& dropout_bwd();

}  // namespace numcheck::op
