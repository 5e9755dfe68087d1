// Whether random draws repeat themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/chance.hpp"

namespace numcheck::reference {

/// How much draws depend on those `lag` places before them: the largest |r_L| of all lags L > 0,
///
///   r_L = sum_n x_n x_(n+L) / sum_n x_n^2
///
/// Equal draws have r_L = 1; if one draw in ten is a copy, about 0.1.
struct DrawCorrelation {
  double measured = 0;
  std::int64_t lag = 0;
  double limit = 0;  ///< independent draws exceed it at most one time in `one_in`, over all lags together
};

/// Most draws that are compared: the transforms take some tens of megabytes.
inline constexpr std::size_t kMostCorrelatedDraws = std::size_t{1} << 19;

/// x_n is 1 - probability where the event happened, -probability where it did not, and 0 where there is no draw. At least one
/// is not 0.
///
/// The limit is Freedman's for sums of martingale differences, which the terms of r_L are if draws are independent: with
/// M = max(probability, 1 - probability)^2 >= |x_n x_m| and V = probability (1 - probability) sum x^2, a sum exceeds t in
/// magnitude with at most the probability 2 exp(-t^2 / (2 V + 2 M t / 3)). The theorem wants a bound of V that does not
/// depend on the draws; this one does, but hardly: sum x^2 is a sum of many independent terms.
/// Source: Freedman, "On Tail Probabilities for Martingales", Annals of Probability 3 (1975).
[[nodiscard]] DrawCorrelation draw_correlation(std::span<const float> x, double probability,
                                               double one_in = kGateOneIn);

}  // namespace numcheck::reference
