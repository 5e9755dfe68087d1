// Numbers that a person would have typed, near one that was fitted.
#pragma once

#include <vector>

namespace numcheck::diagnose {

/// Powers of two, whole numbers, their inverses and (inverse) roots, and few decimal digits, of those that lie near x, the
/// roundest first; last, x with seven digits. 0.1249999 gives 0.125 and itself. Nothing unless x is finite. `near`: how near, relative
/// to x, powers of two, whole numbers and the like.
inline constexpr double kTypedNear = 1e-3;
[[nodiscard]] std::vector<double> typed_near(double x, double near = kTypedNear);

}  // namespace numcheck::diagnose
