// Hypotheses that do not explain all of an output, but may be the first one of two causes.
#pragma once

#include <vector>

#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {

struct FirstCause {
  Hypothesis hypothesis;
  double share = 0;                 ///< of the squared error that it explains, or of what no factor explains
  double rms_left = 0, cosine = 0;  ///< of Explanation
};

/// The few that explain most. Of a family some: the number that fits best makes up for another cause as well, so that a usual one
/// comes before it. Two that leave the same to the last bits are two words for one computation (alpha=2, output_scaled=2), of which
/// the first one is kept.
class FirstCauses {
 public:
  void remember(FirstCause cause);
  /// Those that explain most first; none is left.
  [[nodiscard]] std::vector<FirstCause> take();

 private:
  std::vector<FirstCause> causes_;
};

}  // namespace numcheck::diagnose
