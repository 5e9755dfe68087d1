// What independent draws do by chance.
#pragma once

namespace numcheck::reference {

/// How far the share of n independent draws may be from its probability, but for one time in 10^7; with several `shares`,
/// any of them. By Bernstein's inequality.
[[nodiscard]] double share_error(double probability, double n, double shares = 1);

}  // namespace numcheck::reference
