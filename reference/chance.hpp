// What independent draws do by chance.
#pragma once

namespace numcheck::reference {

/// A gate may fail once in so many right results.
inline constexpr double kGateOneIn = 1e7;

/// How far the share of n independent draws may be from its probability, but for one time in `one_in`; with several
/// `shares`, any of them. By Bernstein's inequality.
[[nodiscard]] double share_error(double probability, double n, double shares = 1, double one_in = kGateOneIn);

}  // namespace numcheck::reference
