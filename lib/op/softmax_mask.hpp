// Which scores of a softmax row count: the masks of softmax_fwd and softmax_bwd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::op {

/// TransformerEngine's four softmax functions: scaled_softmax, scaled_masked_softmax,
/// scaled_upper_triang_masked_softmax, scaled_aligned_causal_masked_softmax.
enum class SoftmaxMask : std::uint8_t { none, arbitrary, causal, causal_bottom_right };

/// What TransformerEngine puts in place of a masked score.
inline constexpr double kMaskedScore = -10000;

/// The mask with that name: none | arbitrary | causal | causal_bottom_right. Throws core::InternalError for any other.
[[nodiscard]] SoftmaxMask softmax_mask(const std::string& name);

/// True if outputs right of a diagonal are zero, whatever the scores.
[[nodiscard]] constexpr bool is_causal(SoftmaxMask mask) noexcept {
  return mask == SoftmaxMask::causal || mask == SoftmaxMask::causal_bottom_right;
}

/// Number of columns of row `row` of an sq x sk matrix on or left of the diagonal: all of them without a diagonal,
/// row + 1 if it starts in the top left corner, row + 1 + sk - sq if it ends in the bottom right one; clamped to
/// [0, sk].
[[nodiscard]] std::int64_t columns_before_diagonal(SoftmaxMask mask, std::int64_t row, std::int64_t sq,
                                                   std::int64_t sk) noexcept;

/// Lanes over which TransformerEngine's bottom-right kernel spreads a row: the smallest power of two >= sk. All lanes
/// past the diagonal hold kMaskedScore, and these enter its maximum and its sum.
[[nodiscard]] std::int64_t softmax_lanes(std::int64_t sk) noexcept;

/// The mistake of a tensor [batches * heads, sq, sk] that no memory can hold, as a sentence; nothing otherwise.
[[nodiscard]] std::vector<std::string> check_softmax_size(std::string_view op, std::int64_t batches, std::int64_t heads,
                                                          std::int64_t sq, std::int64_t sk);

}  // namespace numcheck::op
