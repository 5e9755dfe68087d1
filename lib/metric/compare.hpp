// One parallel pass over (got, expected, magnitude, deviation): every norm, every statistic of the gates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "metric/row_source.hpp"
#include "model/error_model.hpp"
#include "op/op.hpp"
#include "op/reference.hpp"

namespace numcheck::metric {

/// What is known of the operands of all elements in one row, or in one column, of a product's output.
struct Line {
  double largest = 0;                                         ///< finite magnitude
  double smallest = std::numeric_limits<double>::infinity();  ///< magnitude that is not zero
  bool finite = true;                                         ///< all are
};

/// What is compared. Arrays are dense in logical order, or follow `sample`.
struct CompareInput {
  const op::Port* port = nullptr;      ///< layout of `got`
  std::span<const std::byte> got;      ///< the port's buffer as downloaded (with padding)
  std::span<const double> expected;    ///< y on the rounded inputs: what the verdict compares with
  std::span<const double> unrounded;   ///< y on the unrounded inputs; empty if equal to `expected` or not wanted
  bool unrounded_is_expected = false;  ///< the inputs were not rounded: total errors equal the arithmetic ones
  std::span<const float> magnitude;
  std::span<const float> deviation;
  std::span<const float> terms;  ///< op::OutputValues::terms; empty if they are not known or not wanted
  double term_count = 1;
  /// Makes the arrays, row by row: they are empty then. Null: they are there. Of outputs of many rows, all of which are compared,
  /// with models whose errors are those of single elements.
  const RowSource* source = nullptr;
  const op::Sample* sample = nullptr;
  const model::ErrorModel* model = nullptr;
  double rtol = 0;  ///< the plan's own, counted when have_allclose
  double atol = 0;
  bool have_allclose = false;
  std::span<const op::OutputValues::Range> outside;  ///< ascending: what the op leaves to the implementation
  std::span<const Line> row_lines, column_lines;     ///< of all batches; empty if what they say is not needed
  std::span<const float> row_slopes;                 ///< model::ErrorModel::row_slopes; empty if it has none
  std::optional<double> known_repeats;               ///< repeats_of(expected), if somebody knows it already
  std::span<const double> missing_tail;              ///< for tolerance::certify only, see there; may be empty
};

/// One of the worst elements.
struct Worst {
  std::int64_t index = 0;  ///< flat logical index
  double got = 0;
  std::uint64_t got_bits = 0;
  double expected = 0;
  double ulps = 0;
  double over_bound = 0;  ///< |e| / B
};

/// The result of another tool's predicate.
struct Opinion {
  std::uint64_t mismatches = 0;
  double max_excess = 0;  ///< largest |e| / limit
};

/// Norms of an error e = got - y over elements finite on both sides.
struct ErrorNorms {
  double max_abs = 0, max_rel = 0, l1 = 0, l2 = 0, linf = 0;
  double rel_l2 = 0;  ///< Frobenius-relative: |e|_2 / |y|_2
  double rms = 0, mean_signed = 0, nmse = 0, sqnr_db = 0, cosine = 0;
};

/// FP32 results that end in zeros, as numbers of shorter formats do; counted are those elements of which correct
/// arithmetic would leave few.
struct Lattice {
  int bits = 0;  ///< zeros at the end
  std::uint64_t count = 0;
  std::uint64_t found = 0;
  double expected = 0;  ///< most of them that chance leaves
};

/// Elements of a 16- or 8-bit output that arithmetic errors move to another number than RN(y) once in two cases at most, even
/// if their variance is twice the predicted one.
struct Flips {
  double width = 0;  ///< the predicted standard deviation is at most so many ulps
  std::uint64_t count = 0;
  std::uint64_t found = 0;  ///< are not RN(y)
  double allowed = 0;       ///< so many would not be, on average
  /// Elements per independent flip. Results that are equal flip together; of c that share an error and differ, as their
  /// distances from boundaries do, those that it reaches.
  double copies = 1;
};

/// Of the rows, columns, 64 x 64 tiles or matrices of an output, the one with the largest errors.
struct Group {
  std::int64_t count = 0;     ///< how many there are
  std::int64_t index = 0;     ///< from 0
  std::int64_t elements = 0;  ///< of that one
  double copies = 1;          ///< elements per independent error
  double excess = 0;          ///< sum over its elements of squared errors, less what is expected of it at most
  double unit = 0;            ///< an excess beyond unit t copies has a probability of at most e^-t; 0: not known
};

/// See groups.hpp.
struct Groups {
  Group row, column, tile, matrix;
  bool rows_of_heads = false;  ///< each row has several, see clustered_shape
};

/// The block of rows of one head, or all rows of a head, whose slope of e on y is closest to its limit: block_slopes.hpp.
struct BlockSlope {
  std::int64_t matrix = 0, first_row = 0, rows = 0, head = 0;
  std::uint64_t count = 0;  ///< blocks and heads that were looked at; 0: nothing is known of them
  double slope = 0;
  double slack = 0;  ///< what rows may be off by as a whole
  double alike = 0,
         independent = 0;            ///< its predicted standard error: all of a row have one error, or each has its own
  double scatter = 0, clusters = 1;  ///< that which rows show, and how many rows of equal weight there are

  [[nodiscard]] double limit() const;
};

/// Of an output of which A is known, the sum of the magnitudes of the terms of y.
struct TermStatistics {
  double backward_error = 0;         ///< componentwise: largest |e| / A
  double backward_error_scaled = 0;  ///< the same over u sqrt(k), u the unit roundoff of the output, k terms
  double max_ulp = 0;                ///< largest |e| in ulps of the output at A
  /// Elements with y != 0 (of more than 2^16, some of them) by A / |y|: up to 10, up to 100, ... up to 10^6, more.
  std::array<std::uint64_t, 7> condition_histogram{};
};

struct Statistics {
  std::uint64_t elements = 0;
  std::uint64_t finite = 0;              ///< compared numerically
  std::uint64_t nonfinite_mismatch = 0;  ///< NaN/Inf pattern differs beyond the declared rule
  /// Elements that are not judged, and why. `finite` contains those whose output is finite.
  std::uint64_t unknown = 0;          ///< the bound of their error is NaN or infinite
  std::uint64_t undetermined = 0;     ///< any number that the output has is within the bound, whatever its sign
  std::uint64_t order_dependent = 0;  ///< NaN or infinite, which may depend on the order of the partial sums
  std::uint64_t outside = 0;          ///< elements of any value, as the op leaves them to the implementation
  std::uint64_t left_out = 0;   ///< of all these, those that are finite: they do not count in means, see counted()
  std::uint64_t unsampled = 0;  ///< elements of the output besides `elements`: not part of the sample
  std::uint64_t poison = 0;     ///< elements that still hold the poison pattern
  std::uint64_t zeros_got = 0;
  std::uint64_t exact_mismatch = 0;  ///< got != RN(y), bit for bit (zero signs aside)
  bool expected_constant = false;
  /// Of an output that is defined bit for bit: all elements are finite and RN(y), with the sign of y where they are 0. What only gates
  /// of other outputs ask for is not known then: signal, spread_ulps, flips, groups, slope_clusters.
  bool bits_hold = false;

  ErrorNorms arithmetic;  ///< against `expected`
  ErrorNorms total;       ///< against `unrounded`
  double rms_expected = 0;
  /// p = -log2(rho / (0.425 sqrt n)). For FP32 sums of products, rho is the rms of e / sqrt(S2), and n the number of
  /// operands that rounding changes; NaN if FP32 holds none of the S2. For other outputs, and where there are no
  /// products, rho is rel_l2, and n = 1: the result itself is rounded. Of more than 2^16 elements, rho is that of some.
  double effective_bits = 0;
  std::optional<TermStatistics> terms;

  double max_ulp = 0, mean_ulp = 0;
  std::optional<double> max_ulp_at_rms;  ///< largest |e| in ulps of the output at rms(y)
  std::optional<double> flip_rate;       ///< of 16- and 8-bit numbers: share of the elements that are not RN(y)
  /// Of 16- and 8-bit numbers: Kolmogorov and Smirnov's distance of (got - y) / ulp from those of RN(y).
  std::optional<double> residual_distance;
  std::optional<double> flip_rate_predicted;      ///< of normal errors with the predicted variance
  std::array<std::uint64_t, 16> ulp_histogram{};  ///< bins 0, (0,1/2], (1/2,1], (1,2], (2,4], ... in output ulps

  /// Of |z|: [0,1/2), [1/2,1), ... [7/2,4), [4,8), and 8 or more; of perfect errors they are those of a normal variable.
  std::array<std::uint64_t, 10> z_histogram{};

  double max_over_bound = 0;                ///< G1
  double z_rms = 0, z_q999 = 0, z_max = 0;  ///< G2
  double slope = 0, slope_se = 0;           ///< G3; se infinite below 8 x 8
  /// Standard error that V predicts if all errors of a row, or of a column, were the same: a lower limit for the
  /// clustered one, which may come from few rows or columns only. Of 16- and 8-bit outputs, of the arithmetic's errors.
  double slope_predicted_se = 0;
  /// Of 16- and 8-bit outputs: what flips add to it if V is twice the predicted one, the slope that they have on
  /// average with this V or the predicted one, whichever is steeper, because y lies at certain distances from boundaries,
  /// and the largest share of a single element.
  double slope_flip_se = 0, slope_flip_drift = 0, slope_flip_step = 0;
  double slope_clusters = 0;  ///< how many rows, or columns, its measured standard error comes from; 0: not known
  double signal = 0;          ///< mean of y^2 / V
  /// Mean of p y^2 / V, where p is the part of y that the same rounding may take of many elements (model::ErrorModel::lost_alike); not
  /// part of compare(), and infinite where it is not known.
  double lost = std::numeric_limits<double>::infinity();
  /// sum w |y c| / sum w y^2 with the c of each element, instead of `addend`; like `lost`.
  double known_addend = std::numeric_limits<double>::infinity();
  double copies = 1;       ///< outputs per independent error, if the model says that rows or columns agree
  double spread_ulps = 0;  ///< standard deviation of y in ulps of its rms, of those that are not 0
  double coherence = 0;    ///< mean of |y| / A, weighted as the slope is: the slope's prediction depends on it
  double addend = 0;       ///< sqrt(sum w c^2 / sum w y^2), c = model::ErrorModel::slope_addend
  double intercept = 0;    ///< mean of e, in units of rms(y)
  double toward_zero = 0;  ///< fraction of the elements with an error that err toward zero
  std::uint64_t rounding_elements = 0;  ///< |U| of G4
  double rounding_ratio = 0, rounding_ratio_perfect = 0, rounding_sd = 0, rounding_arith = 0;
  double max_over_half_ulp = 0;  ///< G4 per element: |e| / (ulp/2 + lambda kappa sqrt(V_arith))

  std::array<Flips, 3> flips{};  ///< G4; those of a width have those of smaller ones, too
  /// Of results that are rounded alike, see repeats.hpp; known where any is not RN(y), and in FP32 where there is a slope.
  double repeats = 1;

  std::array<Lattice, 3> lattices{};  ///< counts are 0 where the model does not know the spacing of correct results

  Groups groups;
  BlockSlope block;

  Opinion torch_allclose;  ///< assert_close(got, y.to(got.dtype)) on CUDA tensors, bit for bit: see torch_close.hpp
  Opinion numpy_allclose;  ///< assert_allclose(got, y), in double: NumPy promotes every format to y's
  Opinion te_compare;      ///< compareResults of TransformerEngine's C++ tests, with y rounded to the output's format
  Opinion plan_allclose;   ///< the plan's own, in double
  /// Finite elements that are judged: z_rms, z_q999, the slopes and what these need are about them. Of the others, whose predicted
  /// error is as large as the output or is not known, only G1, z_max and the gates of single elements say anything.
  [[nodiscard]] std::uint64_t counted() const noexcept { return finite - left_out; }
  /// Compared elements that should be judged, but are not.
  [[nodiscard]] std::uint64_t unjudged() const noexcept { return unknown + undetermined + order_dependent; }
  /// Share of the compared elements that are judged, without those outside; 1 if there are none.
  [[nodiscard]] double judged() const noexcept {
    return unjudged() == 0 ? 1 : 1 - static_cast<double>(unjudged()) / static_cast<double>(elements - outside);
  }

  double plan_limit_over_bound = 0;   ///< smallest limit / B of the plan's own tolerance
  double plan_atol_over_ulp = 0;      ///< its atol in ulps of the output at rms(y)
  double plan_ulp_over_bound = 0;     ///< the plan's max_ulp over the largest B in ulps; 0: it has none
  double plan_rel_l2_over_bound = 0;  ///< its rel_l2 over |B|_2 / |y|_2; 0: it has none
  std::vector<Worst> worst;           ///< at most 5, largest |e|/B first
};

/// Rows of a source do not tell what must be known of all of them: the same values everywhere, or errors as large as the output.
struct NeedsAllRows {};

/// Throws NeedsAllRows. Parallel; merged in a fixed order, hence bit-identical for any thread count and instruction set.
[[nodiscard]] Statistics compare(const CompareInput& input);

}  // namespace numcheck::metric
