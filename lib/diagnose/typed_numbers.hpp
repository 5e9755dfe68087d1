// Numbers that a person would have typed, near one that was fitted.
#pragma once

#include <vector>

namespace numcheck::diagnose {

inline constexpr double kTypedNear = 1e-3;
inline constexpr int kFittedDigits = 9;  ///< tell all numbers of FP32 apart, as gates of FP32 outputs do

/// Powers of two, whole numbers, their inverses and (inverse) roots, few decimal digits and inverses of such numbers, of those
/// that lie near x, the roundest first; last, x with kFittedDigits. 0.1249999999 gives 0.125 and itself. Nothing unless x is
/// finite. `near`: how near, relative to x, powers of two, whole numbers and the like.
[[nodiscard]] std::vector<double> typed_near(double x, double near = kTypedNear);

}  // namespace numcheck::diagnose
