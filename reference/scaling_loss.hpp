// What quantising with a scale other than the implied one loses.
#pragma once

#include <cstddef>
#include <vector>

#include "core/dtype.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// Of 4096 normal numbers, scaled so that the largest magnitude of all is `largest`, stored in the format.
struct ScalingLoss {
  double clipped = 0;    ///< share of those that are stored as the largest number though the next one would be nearer
  double underflow = 0;  ///< share of those that are stored as 0
  double sqnr_db = 0;    ///< 10 log10(sum x^2 / sum error^2); infinite if there is no error
};

/// Precondition: 0 <= largest < infinity. A scale of 0 leaves 0.
[[nodiscard]] ScalingLoss scaling_loss(double largest, core::Dtype format);

/// Scaled amaxes whose data lose at most 3 dB of the SQNR that data have whose largest magnitude is the format's largest number.
struct ScalingRange {
  double smallest = 0, largest = 0;
};
/// Of the two FP8 formats.
[[nodiscard]] ScalingRange good_scaling(core::Dtype format);

/// Most rows of a series; of more steps, so many are taken evenly, the first and the last among them.
inline constexpr std::size_t kMostSeriesRows = 1024;

/// Findings about the device's scales. Steps whose amax is 0, infinite or NaN have no data to scale, and are left out.
///
///   largest scaled amax    max over steps and tensors of amax_t s_t / MAX: above 1, data are clipped
///   smallest scaled amax   min: far below 1, data become 0
///   steps that lose 3 dB   share of steps, of all tensors, whose scaled amax is outside of good_scaling
///
/// The first two name the step and the tensor where it is so, the scale used there, the one implied by the step's own amax, and
/// the loss of scaling_loss; the third names the first and the last such step, and has
/// a series: of each step the tensor with data whose scaled amax is farthest beyond good_scaling, or nearest to its ends,
///
///   step, tensor              numbers, from 0
///   scale_used, scale_implied s_t, and the scale that the step's own amax implies
///   clipped, underflow        shares, as in ScalingLoss
///   sqnr_db                   dB
///   dead_tensors              tensors with data of which nothing is left but zeros
///
/// None if no step has data.
[[nodiscard]] std::vector<op::Finding> scaling_findings(const op::FindingRequest& request);

}  // namespace numcheck::reference
