#include "op/known_cause.hpp"

#include <algorithm>
#include <array>

namespace numcheck::op {

std::span<const KnownCause> known_causes() {
  static constexpr std::array kAll = {
      kSubnormalsAsZeros,   kGeluOverflow,   kDrawsReused,         kInfiniteRows,
      kRowsOfInfinitiesNan, kLoneElements,   kExponentialsRounded, kExponentialsRoundedAndAdded,
      kNegativeScale,       kScoresOverflow, kAlibiShift,          kLseOverflow,
      kSinkGradient,        kDeltaUnscaled,  kEmptySequences,      kKeysBeyond,
      kQueriesBeyond,       kMaskedLeak,     kLostQueries,         kSinkMissing,
      kPaddedAmax,          kZeroChannels,   kProductRounded,      kSumRounded,
      kSlicesOverflow,      kRangeOfK,       kCubedDeviation,      kScaleOverflow};
  return kAll;
}

const KnownCause* find_known_cause(std::string_view name) {
  const auto found = std::ranges::find(known_causes(), name, &KnownCause::name);
  return found == known_causes().end() ? nullptr : &*found;
}

}  // namespace numcheck::op
