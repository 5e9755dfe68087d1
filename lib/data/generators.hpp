// One generator per distribution; distribution.hpp says what they have in common.
#pragma once

#include <cstdint>
#include <span>

#include "core/rng.hpp"
#include "data/distribution_params.hpp"
#include "data/geometry.hpp"

namespace numcheck::data {

/// sigma * z.
void generate_normal(const NormalParams& params, const core::StreamId& stream, std::uint64_t first,
                     std::span<double> out);
/// (word + 1) / 2^32.
void generate_positive(const NoParams& params, const core::StreamId& stream, std::uint64_t first,
                       std::span<double> out);
/// low + (high - low) (word + 1/2) / 2^32.
void generate_uniform(const UniformParams& params, const core::StreamId& stream, std::uint64_t first,
                      std::span<double> out);
void generate_constant(const ConstantParams& params, const core::StreamId& stream, std::uint64_t first,
                       std::span<double> out);
/// mean + sigma * z.
void generate_large_mean(const LargeMeanParams& params, const core::StreamId& stream, std::uint64_t first,
                         std::span<double> out);
/// +-2^x, x uniform between low and high.
void generate_log_uniform(const LogUniformParams& params, const core::StreamId& stream, std::uint64_t first,
                          std::span<double> out);
/// z, times `scale` where a second draw is below `fraction`.
void generate_outliers(const OutlierParams& params, const core::StreamId& stream, std::uint64_t first,
                       std::span<double> out);
/// +-1..max, uniform.
void generate_integers(const ExactParams& params, const core::StreamId& stream, std::uint64_t first,
                       std::span<double> out);
/// +-1.
void generate_signs(const NoParams& params, const core::StreamId& stream, std::uint64_t first, std::span<double> out);
/// +-(1 + (f + 1/2) 2^-m) 2^e: m fraction bits of the format, f uniform, e uniform in -3..3, within the normal range of
/// every format. "mixed" also draws the format.
void generate_ties(const TieParams& params, const core::StreamId& stream, std::uint64_t first, std::span<double> out);
/// z, or a special value where a second draw is below `fraction`: NaN, +-infinity, +-0, the smallest and the largest
/// FP32 subnormal, the smallest normal, the largest number, or a random subnormal.
void generate_specials(const SpecialParams& params, const core::StreamId& stream, std::uint64_t first,
                       std::span<double> out);
/// (-1)^(index / period) (1 + u) / 2.
void generate_structured(const StructuredParams& params, const core::StreamId& stream, std::uint64_t first,
                         std::span<double> out);

/// The number whose bits in the format are index * stride modulo 2^16 or 2^32, NaN and infinities included. Every NaN
/// becomes the quiet positive one.
void generate_patterns(const PatternParams& params, const core::StreamId& stream, std::uint64_t first,
                       std::span<double> out);

/// Row r = index / cols: sigma_r z + mean_r with sigma_r = 2^x, x uniform between low and high, and |mean_r| / sigma_r
/// one of 0, 2^4 and 2^10 with either sign. The product is exact in double, so a fused multiply-add yields the same
/// bits.
void generate_rows(const RowsParams& params, const core::StreamId& stream, std::uint64_t first, std::span<double> out,
                   std::uint64_t cols);

/// A matrix of rows x cols whose rows are the tokens of a sequence and whose columns are channels:
///   x[r, c] = s_c (sum_k a[r, k] b[k, c] + sqrt(noise) z[r, c] + drift (p + 1/2) / rows + (p = 0 ? sink : 0))
/// with p the row's position in its matrix, k < rank, a and z standard normal and b normal with variance
/// (1 - noise) / rank, so that the bracket has variance 1 around its mean. s_c is `outlier` for one channel in each
/// `outlier_every` consecutive ones (of fewer at the end), drawn uniformly, and 1 elsewhere. b and s are the same for
/// all matrices of a batch; each has its own tokens. The mean is the same in all channels: two tensors drawn alike then
/// have a positive inner product along their columns, so that the first key draws the queries' attention, the more the
/// later they come.
/// Matrices of one row (biases, weights of norms, a single query) have neither mean nor low-rank part, s_c z[r, c];
/// those of one column are standard normal.
/// Sources of the traits: Dettmers et al., LLM.int8(), NeurIPS 2022 (outlier channels: the same for all tokens, up to
/// 20 times larger); Xiao et al., Efficient Streaming Language Models with Attention Sinks, ICLR 2024; Sun et al.,
/// Massive Activations in Large Language Models, COLM 2024 (first token).
void generate_activations(const ActivationParams& params, const core::StreamId& stream, std::uint64_t first,
                          std::span<double> out, const Geometry& geometry);

/// 1 at one index of every sum, 0 elsewhere. Sums are the rows, or the columns of each matrix if it is reduced along
/// rows; sum s of length n has its 1 at n - 1 - s / 2 (modulo n) if s is even, and at floor(n v(s / 2)) if it is odd, where
/// v(i) is the van der Corput sequence 0, 1/2, 1/4, 3/4, 1/8, ...
void generate_one_hot(std::uint64_t first, std::span<double> out, const Geometry& geometry);

}  // namespace numcheck::data
