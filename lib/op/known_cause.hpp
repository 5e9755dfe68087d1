// Causes that ops' own diagnoses find: their names, for programs.
#pragma once

#include <span>
#include <string_view>

namespace numcheck::op {

/// `name` is Finding::name of such a diagnosis. It stays what it is; the finding's cause says it in words, of this output.
struct KnownCause {
  std::string_view name, doc;
};

inline constexpr KnownCause kSubnormalsAsZeros{"subnormals_as_zeros",
                                               "subnormal inputs and results that are taken for zero"};
inline constexpr KnownCause kGeluOverflow{"gelu_of_overflow",
                                          "NaN where gelu is applied to sums below the smallest number of the format"};
inline constexpr KnownCause kDrawsReused{"draws_reused", "draws of a dropout mask that several queries or keys share"};
inline constexpr KnownCause kInfiniteRows{"rsigma_of_infinities",
                                          "rows with infinities whose reciprocal deviation is 0"};
inline constexpr KnownCause kRowsOfInfinitiesNan{"rows_of_infinities_nan",
                                                 "rows with infinities that are NaN as a whole"};
inline constexpr KnownCause kLoneElements{"rsigma_of_one_element",
                                          "rows of one element that have no deviation, even of infinities and NaN"};
inline constexpr KnownCause kExponentialsRounded{"exponentials_rounded",
                                                 "exponentials rounded to the output's format before they are divided"};
inline constexpr KnownCause kExponentialsRoundedAndAdded{
    "exponentials_rounded_and_added", "exponentials rounded to the output's format before they are added and divided"};
inline constexpr KnownCause kNegativeScale{
    "negative_scale_of_masked", "masked scores that are -infinity before they are scaled by a negative number"};
inline constexpr KnownCause kScoresOverflow{"scores_overflow_in_fp16", "scores above 65504 that overflow in FP16"};
inline constexpr KnownCause kAlibiShift{"lse_without_alibi_shift",
                                        "a log-sum-exp that lacks ALiBi's shift of the diagonal"};
inline constexpr KnownCause kLseOverflow{"exp_of_lse_overflows",
                                         "gradients of queries whose log-sum-exp is so small that exp(-lse) overflows"};
inline constexpr KnownCause kSinkGradient{"sink_gradient_times_keep",
                                          "a gradient of the softmax offset that is multiplied by 1 - dropout"};
inline constexpr KnownCause kDeltaUnscaled{"delta_without_keep",
                                           "gradients whose row sums D are not multiplied by 1 - dropout"};
inline constexpr KnownCause kEmptySequences{"empty_sequences_unwritten",
                                            "sequences without queries or without keys that are left unwritten"};
inline constexpr KnownCause kKeysBeyond{"keys_beyond_in_amax",
                                        "keys of zeros beyond the last one that count in an amax"};
inline constexpr KnownCause kQueriesBeyond{"queries_beyond_in_amax",
                                           "queries of zeros beyond the last one that count in an amax"};
inline constexpr KnownCause kMaskedLeak{"masked_values_leak",
                                        "NaN and infinities that are masked out, in the output or in gradients"};
inline constexpr KnownCause kLostQueries{"queries_lost_in_blocks",
                                         "gradients of keys that lack the parts of whole blocks of 64 queries"};
inline constexpr KnownCause kSinkMissing{"sink_missing", "a denominator without the sink"};
inline constexpr KnownCause kPaddedAmax{"padding_in_amax", "queries that are padding and count in an amax"};
inline constexpr KnownCause kZeroChannels{"half_of_dq_zero", "last rows of dq of which half of the channels are zero"};

/// Rounded too early (reference/gemm_diagnosis.hpp), and which products of a sum are missing (reference/gemm_k_ranges.hpp).
inline constexpr KnownCause kProductRounded{"product_rounded_before_c",
                                            "a product rounded to the output's format before C is added"};
inline constexpr KnownCause kSumRounded{"sum_rounded_before_bias",
                                        "a sum rounded to the output's format before the bias is added"};
inline constexpr KnownCause kRangeOfK{"range_of_k", "products of a range of k that are missing or counted twice"};

/// All of them.
[[nodiscard]] std::span<const KnownCause> known_causes();

}  // namespace numcheck::op
