#include "reference/chance.hpp"

#include <cmath>

namespace numcheck::reference {

double share_error(double probability, double n, double shares, double one_in) {
  const double per_draw = std::log(2 * one_in * shares) / n;
  return per_draw / 3 + std::sqrt(per_draw * per_draw / 9 + 2 * per_draw * probability * (1 - probability));
}

}  // namespace numcheck::reference
