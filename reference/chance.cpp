#include "reference/chance.hpp"

#include <cmath>

namespace numcheck::reference {

double share_error(double probability, double n, double shares) {
  constexpr double kOneIn = 1e7;
  const double per_draw = std::log(2 * kOneIn * shares) / n;
  return per_draw / 3 + std::sqrt(per_draw * per_draw / 9 + 2 * per_draw * probability * (1 - probability));
}

}  // namespace numcheck::reference
