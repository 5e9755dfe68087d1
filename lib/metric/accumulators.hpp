// Running sums of the comparison, shared by the kernels of all instruction sets: plain data, no std types. Element i of
// a segment always goes to lane i % kLanes, so every instruction set produces the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numcheck::metric {

inline constexpr int kLanes = 8;
inline constexpr int kSegment = 512;  ///< maximum elements per kernel call; a multiple of kLanes
/// Elements between checks of the flags that trigger slow updates.
inline constexpr std::size_t kBlock = 64;
/// Length of arrays that hold a segment: not a multiple of 4 KiB, so that they do not all compete for the same L1 cache
/// sets.
inline constexpr int kSegmentRoom = kSegment + 3 * kLanes;
inline constexpr int kUlpBins = 16;
inline constexpr int kSpreadBins = 2048;  ///< of z^2: 32 per octave from 2^-16 to 2^48
inline constexpr int kWorst = 5;
/// How many last bits of FP32 are zero in numbers of E8M13 (FP8 sums), of TF32 or FP16, and of BF16.
inline constexpr int kLattices = 3;
inline constexpr int kLatticeBits[kLattices] = {10, 13, 16};

/// What an element adds to those of its row, column, tile and matrix, see groups.hpp. FP32: e^2 / V. Otherwise, with
/// b = |e| - ulp / 2, what arithmetic must have contributed at least: (b / sd)^2, less what it may contribute where y is
/// within reach of a boundary between two numbers, or anywhere if sd is that wide.
inline constexpr float kGroupReach = 10;    ///< in sd
inline constexpr float kGroupWide = 0.05F;  ///< in ulps
inline constexpr float kGroupNearOffset = 1;
inline constexpr float kGroupWideOffset = 8;

/// Of how likely errors are to flip y to another number than RN(y): see gate_flips.hpp.
inline constexpr float kFlipReach = 10;            ///< farther boundaries, in sd, are not crossed
inline constexpr float kFlipSpread = 1.41421356F;  ///< errors may be so many times as large: twice the variance
inline constexpr float kFlipMost = 0.5F;           ///< a probability from which a flip tells nothing
/// Elements are counted by the size of sd in ulps: where it is large, flips hide what they tell where it is small.
inline constexpr int kFlipClasses = 3;
inline constexpr float kFlipWidths[kFlipClasses] = {1.0F / 64, 1.0F / 16, 1e30F};

inline constexpr std::int64_t kTileSide = 64;  ///< of the tiles, aligned to multiples of it; a block is a row of one
static_assert(kTileSide == kBlock);

/// Sums of e = got - y against one reference.
struct ErrorSums {
  double e[kLanes], abs_e[kLanes], e2[kLanes], y[kLanes], y2[kLanes], ey[kLanes];
  double max_abs[kLanes];
  std::int64_t nonzero[kLanes];      ///< e != 0
  std::int64_t toward_zero[kLanes];  ///< e y < 0
  double max_rel;                    ///< |e| / |y| over y != 0
};

/// In units of the output's ulp at y.
struct UlpSums {
  double sum[kLanes], max[kLanes];
  std::int64_t inexact[kLanes];  ///< got != RN(y)
  std::int64_t zeros[kLanes];    ///< got == 0
};

/// Sums of another tool's predicate.
struct PredicateSums {
  std::int64_t mismatches[kLanes];
  double max_excess;  ///< |e| / limit
};

/// Gates G1 and G2, and the sums of G3.
struct GateSums {
  double z2[kLanes], z2_max[kLanes];
  double aa[kLanes], ab[kLanes], bb[kLanes];  ///< of a = w y e' and b = w y^2
  double coherence[kLanes];                   ///< sum of b |y| / A
  double addends[kLanes];                     ///< sum of w c^2, c = model::ErrorModel::slope_addend, where y is not 0
};

/// Gate G4 of single elements, and the noise of the output's rounding.
struct RoundingSums {
  std::int64_t count[kLanes];
  double ratio[kLanes], perfect[kLanes], perfect2[kLanes], arith[kLanes];
  double max_over_half_ulp;
};

/// Elements whose y is not 0, of 16- and 8-bit outputs: those that are not RN(y), and what is expected of them. Of G3: with
/// c = w y, the changes c (got - RN(y)) have a variance of at most `spread` if they are independent; errors that are all
/// the same in rows or columns have those of `alike`, times their number.
struct FlipSums {
  std::int64_t count[kFlipClasses][kLanes];  ///< whose probability of a flip is at most kFlipMost, up to each width
  std::int64_t found[kFlipClasses][kLanes];  ///< of these, got != RN(y)
  double allowed[kFlipClasses]
                [kLanes];    ///< of these, sum of the probabilities with errors kFlipSpread times the predicted ones
  double predicted[kLanes];  ///< of all, sum of the probabilities with the predicted errors
  double spread[kLanes], alike[kLanes];
  double drift[kLanes];   ///< expected sum of the changes, with errors kFlipSpread times the predicted ones
  double nearer[kLanes];  ///< and with the predicted ones: neither needs to be the larger
  double step[kLanes];    ///< the largest change
};

/// The lattice gate, for each of kLatticeBits. An element counts if its rounded reference is at least a quarter of the
/// lattice's spacing away from it and correct results are mostly not on the lattice.
struct LatticeSums {
  std::int64_t count[kLattices][kLanes];
  std::int64_t found[kLattices][kLanes];  ///< got ends in that many zeros
  double expected[kLattices][kLanes];     ///< sum of the probabilities of that
};

/// The worst elements so far, sorted by descending |e| / B; ties keep the earlier element.
struct WorstList {
  double over_bound[kWorst];
  std::int64_t position[kWorst];  ///< flat index of the element
  double got[kWorst];
  double expected[kWorst];
  int count;
};

/// Of outputs whose A, the sum of the magnitudes of the terms of y, is known; of products also their S2, see
/// model::ErrorModel::terms. Elements whose A, or sqrt(S2), is beyond the range in which FP32 holds it are left out where it
/// is needed.
inline constexpr int kConditions = 6;  ///< powers of ten, from 10
inline constexpr double kLeastTermSum =
    0x1p-139;  ///< a thousand steps of FP32's subnormals; smaller ones are not known
struct TermSums {
  double backward;                              ///< largest |e| / A
  double ulps;                                  ///< largest |e| in ulps at A
  double rho2[kLanes];                          ///< sum of e^2 / S2
  std::int64_t scaled[kLanes];                  ///< how many these are
  std::int64_t conditioned[kLanes];             ///< y != 0
  std::int64_t condition[kConditions][kLanes];  ///< of these, A > 10^(i + 1) |y|
};

struct Accumulators {
  ErrorSums arithmetic;
  ErrorSums total;
  UlpSums ulps;
  PredicateSums torch, numpy, te, plan;
  GateSums gates;
  RoundingSums rounding;
  FlipSums flips;
  LatticeSums lattice;
  TermSums terms;
  WorstList worst;
  double plan_over_bound;  ///< smallest limit / B of the plan's predicate
};

/// Integer counts, merged by addition in any order. Neighbouring elements are counted in different copies: they often
/// share a bin, and an increment depends on the previous one.
inline constexpr int kCopies = 4;
struct Histograms {
  std::uint32_t spread[kCopies][kSpreadBins];
  std::uint32_t ulps[kUlpBins];  ///< bin 1 includes bin 0, which stays empty
};

/// What the kernels need to know about the output format.
struct FormatConstants {
  double fraction_scale;  ///< 2^-m
  double min_normal;      ///< 2^emin
  double max_finite;
  double overflow_threshold;  ///< smallest |y| that rounds to infinity; infinity for formats that are clamped
  double special_from;        ///< the same if y is rounded to FP32 first, as PyTorch does
  double special_magnitude;   ///< smallest A at which a finite output may not be judged; infinity: none
  bool narrow;                ///< 16 or 8 bits: e' of G3 is got - RN(y), and G4 applies
  bool integer;
};

/// The error model multiplied by the output scale, and the constants of other tools' predicates.
struct ModelConstants {
  double scale;  ///< of A and sqrt(S2): |output scale|
  double bound_magnitude, bound_value, bound_absolute;
  double var_second, var_magnitude, var_value, var_coherent, var_absolute;
  double lambda_kappa;
  /// A is less than that of the terms (model::ErrorModel::gelu), so that sqrt(S2) may exceed it; otherwise only inflation makes it.
  bool narrowed;
  bool coherent;                  ///< uses |y| / A
  double addend;                  ///< model::ErrorModel::slope_addend; 0: none, or none is known
  double torch_rtol, torch_atol;  ///< rounded to FP32, as in PyTorch's kernels
  double te_rtol, te_atol, plan_rtol, plan_atol;
  bool have_plan;
  bool terms;  ///< A of the terms of y is known
};

/// model::Spacing, multiplied by the output scale.
struct LatticeConstants {
  bool asked;
  float value, second, magnitude, absolute;
  float share[kLattices];
};

/// Of larger outputs only about so many elements add to rho2 and to conditions: mean values need no more, and the cost of
/// these is a third of that of the whole comparison.
inline constexpr std::uint64_t kTermElements = std::uint64_t{1} << 16;

struct TermConstants {
  bool clipped;          ///< y may be 0 whatever its terms are: no error is to be seen there
  std::uint64_t stride;  ///< one segment of so many is looked at
};

/// A run of elements, finite on both sides, padded with zeros to a multiple of kLanes.
struct SegmentView {
  const double* got;
  const double* expected;
  const double* unrounded;  ///< may be null
  const float* magnitude;
  const float* deviation;
  const float* terms;  ///< A of the terms of y if the model has them, otherwise any numbers
  float* column_a;     ///< += a of each element
  float* column_b;
  float* column_z;  ///< += what each element adds to its column
  float* block_z;   ///< the sum of these of each block
  /// Distance in elements to the segment that is read next, for prefetching; 0: unknown.
  std::ptrdiff_t ahead;
  std::int64_t position;          ///< flat index of the first element
  const std::int64_t* positions;  ///< of each element if they are not consecutive, otherwise null
  /// Not 0 for elements that are not judged: only their bound, and their own z, say anything. Null: all are.
  const std::uint8_t* unjudged;
  std::size_t size;
  bool
      opinions_counted;  ///< the predicates of torch, numpy and TransformerEngine have already been counted, with special elements
};

}  // namespace numcheck::metric
