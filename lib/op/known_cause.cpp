#include "op/known_cause.hpp"

#include <array>

namespace numcheck::op {

std::span<const KnownCause> known_causes() {
  static constexpr std::array kAll = {kSubnormalsAsZeros,
                                      kGeluOverflow,
                                      kDrawsReused,
                                      kInfiniteRows,
                                      kRowsOfInfinitiesNan,
                                      kLoneElements,
                                      kExponentialsRounded,
                                      kExponentialsRoundedAndAdded,
                                      kNegativeScale,
                                      kScoresOverflow,
                                      kAlibiShift,
                                      kLseOverflow,
                                      kSinkGradient,
                                      kDeltaUnscaled,
                                      kEmptySequences,
                                      kKeysBeyond,
                                      kQueriesBeyond,
                                      kMaskedLeak,
                                      kLostQueries,
                                      kSinkMissing,
                                      kPaddedAmax,
                                      kZeroChannels,
                                      kProductRounded,
                                      kSumRounded,
                                      kRangeOfK};
  return kAll;
}

}  // namespace numcheck::op
