// Error of a sum of products, as the hardware's arithmetic accumulates it.
#pragma once

#include <cstdint>

#include "model/arithmetic.hpp"

namespace numcheck::tolerance {

/// Coefficients of the bound and of the second moment, on the scale of the products' sum y = sum p, A = sum |p|,
/// S2 = sum p^2:
///
///   B = magnitude A + star (A* - A)        V = second S2 + value y^2 + coherent (y^2 / A)^2 + absolute
///   slope of e on y >= -(slope + slope_coherent mean(|y| / A))
///
/// A* is A with products of subnormal operands taken at the exponents at which hardware aligns them.
struct Accumulation {
  double magnitude = 0;
  double star = 0;
  double second = 0;
  double value = 0;
  double coherent = 0;
  double absolute = 0;  ///< per unit of the square of the largest product of a subnormal operand
  double slope = 0;
  double slope_coherent = 0;
  double slope_slack = 0;
};

/// Sequential chain of FP32 fused multiply-adds, k products. Its bound k u A holds for every order; its second moment
///
///   V = 0.18 u^2 k (S2 / 6 + y^2 / 3)
///
/// is that of the natural order for products that are exchangeable along k, and the upper envelope of blocked and split
/// schedules: the squares of the partial sums of a random walk that ends at y add up to k (S2 / 6 + y^2 / 3).
/// `drift` is the relative error that a long sum of one sign has besides (see chain_drift.hpp): V += drift^2 y^2, and a
/// slope of either sign.
/// Source: tensor_core_numerics, sections 5.1 and 5.3.
[[nodiscard]] Accumulation fma_accumulation(std::int64_t k, double drift = 0);

/// Fused steps of L products, each product and the accumulator truncated to 2^-F of the step's largest power of two M,
/// the sum rounded to tau bits; `fraction_bits` are those of an exact product. With T = ceil(k / L) steps,
/// u_tau = 2^-tau and E = S2 / 6 + y^2 / 3 (the mean square of a partial sum; M^2 is 0.54 of it for log-uniform
/// significands), S the number of additions of partial sums:
///
///   B      = (k 2^-F + (T + 4) u_tau + S 2^-24) A*
///   align  = k 2^-2F / 3 (0.54 E + S2 / T)        each truncation loses [0, 1) of a unit; S2 / T covers the largest
///                                                 product of a step where it exceeds the partial sum
///   store  = T u_tau^2 / 12 0.54 E                the random part of truncating the sum
///   shrink = (U r)^2 (y^2 + S2 / 3)               its mean: r = 0.7213 (1 - 2^(tau - F)) u_tau / 2 per step, and step t has
///                                                 t L / k of the sum: U = 1 + L / k T (T - 1) / 2
///   same   = (k / 2 0.7213 2^-F U / T)^2 (y^2/A)^2  the mean loss of products, which adds up if they share a sign
///   V      = align + store + shrink + same
///
/// Promotion restarts the chain every P products and adds the partial sums in FP32: the first three terms are then
/// those of k / P independent chains.
/// Checked with 14 arithmetics (sm_80 to sm_100: FP16, BF16, TF32, E4M3, E5M2, promoted or not), k = 1 to 16 384 and
/// normal, uniform positive, outlier, log-uniform, large-mean and constant data: rms(e / sqrt V) is at most 1.3 and
/// between 0.8 and 1.3 for FP16, BF16 and TF32 at k >= 1024; e / B is at most 0.34; the slope at most 1.06 times the
/// prediction. FP8 products have so few bits that most truncations lose nothing (rms 0.02 to 0.52), so `align` is
/// quartered for them.
/// Source: tensor_core_numerics, sections 5.1 to 5.3; the second moments are derived here.
[[nodiscard]] Accumulation fused_accumulation(const model::Arithmetic& arithmetic, std::int64_t k, int fraction_bits);

/// FP16 accumulation, rounded to nearest after every step. Libraries may use chains of single FP16 fused multiply-adds
/// for shapes that suit no tensor core, so the chain of k roundings is the envelope. Adding products much smaller than
/// half a unit of the sum rounds in one direction as long as they share a sign: `coherent`, measured with constant
/// operands (relative error 0.25 T u at most, T steps) and k = 4096 to 16 384, and a slope of either sign of up to 0.05 T u.
/// Products whose signs are random (`cancels`) leave no slope but what a large one swallows of the others, each below half a
/// unit of it: k u^2 / 3 of y. Replays of chains of 1024 and 8192 products, normal, uniform, with outliers and log-uniform,
/// have slopes of at most 0.5 of that besides their standard error, and e / sqrt(V) of rms 0.52 to 1.00 (0.25 in steps of 16).
[[nodiscard]] Accumulation fp16_accumulation(const model::Arithmetic& arithmetic, std::int64_t k, bool cancels);

/// Upper envelope of two schedules, either of which may have run.
[[nodiscard]] Accumulation either_of(const Accumulation& left, const Accumulation& right);

}  // namespace numcheck::tolerance
