// What independent draws do by chance.
#pragma once

namespace numcheck::reference {

/// A gate may fail once in so many right results.
inline constexpr double kGateOneIn = 1e7;

/// What a sum of independent terms, or of martingale differences, exceeds in magnitude one time in `chances` at most: the t of
/// Bernstein's and Freedman's inequality, 2 exp(-t^2 / (2 V + 2 M t / 3)). `variance`: V of the sum, and `largest`: M of a term.
[[nodiscard]] double exceeded_by_chance(double variance, double largest, double chances);

/// How far the share of n independent draws may be from its probability, but for one time in `one_in`; with several
/// `shares`, any of them. By Bernstein's inequality.
[[nodiscard]] double share_error(double probability, double n, double shares = 1, double one_in = kGateOneIn);

}  // namespace numcheck::reference
