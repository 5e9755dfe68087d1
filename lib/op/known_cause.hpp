// Causes that ops' own diagnoses find: their names, for programs.
#pragma once

#include <span>
#include <string_view>

namespace numcheck::op {

/// `name` is Finding::name of such a diagnosis. It stays what it is; the finding's cause says it in words, of this output.
/// `remedy`: what to do about it, a sentence or two.
struct KnownCause {
  std::string_view name, doc, remedy;
};

inline constexpr KnownCause kSubnormalsAsZeros{
    "subnormals_as_zeros", "subnormal inputs and results that are taken for zero",
    "The kernel was compiled with -ftz=true or --use_fast_math: take another build, or scale the inputs up."};
inline constexpr KnownCause kGeluOverflow{"gelu_of_overflow",
                                          "NaN where gelu is applied to sums below the smallest number of the format",
                                          "The kernel computes x times a tail that it has as infinity times 0: clamp x "
                                          "first, or use one that returns -0 there."};
inline constexpr KnownCause kScaleOverflow{
    "sum_overflows_between_scales", "sums of codes that overflow between the scales of their row and their column",
    "Take scales that are nearer to one another, or one power of two for both: 2^127 beside 2^-149 leaves no room for "
    "a sum."};
inline constexpr KnownCause kDrawsReused{
    "draws_reused", "draws of a dropout mask that several queries or keys share",
    "Look at how the generator's counter follows from the query, the key and the head: each needs a draw of its own."};
inline constexpr KnownCause kInfiniteRows{
    "rsigma_of_infinities", "rows with infinities whose reciprocal deviation is 0",
    "Harmless if a row with infinities is an error anyway: look for what made them infinite."};
inline constexpr KnownCause kRowsOfInfinitiesNan{
    "rows_of_infinities_nan", "rows with infinities that are NaN as a whole",
    "Harmless if a row with infinities is an error anyway: look for what made them infinite."};
inline constexpr KnownCause kLoneElements{
    "rsigma_of_one_element", "rows of one element that have no deviation, even of infinities and NaN",
    "Rows of one element have no variance: normalise over more, or leave the norm out."};
inline constexpr KnownCause kCubedDeviation{
    "cube_of_rsigma_overflows", "gradients of rows whose reciprocal deviation, cubed, overflows in FP32",
    "Multiply by rsigma three times, or bound it: an epsilon of 1e-24 or more keeps its cube finite."};
inline constexpr KnownCause kExponentialsRounded{"exponentials_rounded",
                                                 "exponentials rounded to the output's format before they are divided",
                                                 "Keep exponentials in FP32 until they are divided by their sum."};
inline constexpr KnownCause kExponentialsRoundedAndAdded{
    "exponentials_rounded_and_added", "exponentials rounded to the output's format before they are added and divided",
    "Keep exponentials and their sum in FP32: a sum of 16-bit numbers loses small ones."};
inline constexpr KnownCause kNegativeScale{
    "negative_scale_of_masked", "masked scores that are -infinity before they are scaled by a negative number",
    "Mask after scaling, or move the sign of the scale into q."};
inline constexpr KnownCause kScoresOverflow{"scores_overflow_in_fp16", "scores above 65504 that overflow in FP16",
                                            "Scale q before the product, or store scores in BF16 or FP32."};
inline constexpr KnownCause kAlibiShift{
    "lse_without_alibi_shift", "a log-sum-exp that lacks ALiBi's shift of the diagonal",
    "The output is right; whoever reads the log-sum-exp (a backward pass, context parallelism) must add the shift."};
inline constexpr KnownCause kLseOverflow{
    "exp_of_lse_overflows", "gradients of queries whose log-sum-exp is so small that exp(-lse) overflows",
    "Subtract the log-sum-exp inside the exponential; until then, bound the scores from below or take another engine."};
inline constexpr KnownCause kSinkGradient{"sink_gradient_times_keep",
                                          "a gradient of the softmax offset that is multiplied by 1 - dropout",
                                          "Divide the gradient of the offset by 1 - dropout, or leave dropout out."};
inline constexpr KnownCause kDeltaUnscaled{"delta_without_keep",
                                           "gradients whose row sums D are not multiplied by 1 - dropout",
                                           "Multiply D by 1 - dropout, or take it from the o that was dropped."};
inline constexpr KnownCause kEmptySequences{
    "empty_sequences_unwritten", "sequences without queries or without keys that are left unwritten",
    "Fill the buffers with zeros before the call, or leave empty sequences out."};
inline constexpr KnownCause kKeysBeyond{
    "keys_beyond_in_amax", "keys of zeros beyond the last one that count in an amax",
    "Make the number of keys a multiple of the tile, or compute the amax from the output."};
inline constexpr KnownCause kQueriesBeyond{
    "queries_beyond_in_amax", "queries of zeros beyond the last one that count in an amax",
    "Make the number of queries a multiple of the tile, or compute the amax from the output."};
inline constexpr KnownCause kMaskedLeak{
    "masked_values_leak", "NaN and infinities that are masked out, in the output or in gradients",
    "0 times NaN is NaN: zero the masked rows of v, k and their gradients, padding included, before the call."};
inline constexpr KnownCause kLostQueries{
    "queries_lost_in_blocks", "gradients of keys that lack the parts of whole blocks of 64 queries",
    "Look at how blocks of queries are counted where their number is not a multiple of 64."};
inline constexpr KnownCause kSinkMissing{"sink_missing", "a denominator without the sink",
                                         "Look whether softmax_offset (off_by_one: 1) reaches the kernel, and whether "
                                         "it supports a sink in this format at all."};
inline constexpr KnownCause kPaddedAmax{
    "padding_in_amax", "queries that are padding and count in an amax",
    "Zero the padding of q and v, or compute the amax from the queries that count."};
inline constexpr KnownCause kZeroChannels{"half_of_dq_zero", "last rows of dq of which half of the channels are zero",
                                          "Make the number of queries a multiple of 16, or take another engine."};

/// Rounded too early (reference/gemm_diagnosis.hpp), and which products of a sum are missing (reference/gemm_k_ranges.hpp).
inline constexpr KnownCause kProductRounded{
    "product_rounded_before_c", "a product rounded to the output's format before C is added",
    "Add C in the epilogue in FP32 (beta), not in a pass of its own over the stored product."};
inline constexpr KnownCause kSumRounded{"sum_rounded_before_bias",
                                        "a sum rounded to the output's format before the bias is added",
                                        "Add the bias in the epilogue in FP32, not to the stored sum."};
inline constexpr KnownCause kSlicesOverflow{
    "slices_overflow", "sums of slices of k that overflow in the output's format, though the product need not",
    "Forbid split-K reduction in the output's type (PyTorch allow_fp16_reduced_precision_reduction = False), store "
    "BF16 or "
    "FP32, or scale the operands down."};
inline constexpr KnownCause kRangeOfK{"range_of_k", "products of a range of k that are missing or counted twice",
                                      "Look at the tail of k, and at how split-K divides it."};

/// All of them.
[[nodiscard]] std::span<const KnownCause> known_causes();

/// The one of that name; null if there is none.
[[nodiscard]] const KnownCause* find_known_cause(std::string_view name);

}  // namespace numcheck::op
