#include "reference/chance.hpp"

#include <cmath>

namespace numcheck::reference {

double exceeded_by_chance(double variance, double largest, double chances) {
  const double log = std::log(2 * chances);
  return log * largest / 3 + std::sqrt(log * log * largest * largest / 9 + 2 * log * variance);
}

double share_error(double probability, double n, double shares, double one_in) {
  return exceeded_by_chance(n * probability * (1 - probability), 1, one_in * shares) / n;
}

}  // namespace numcheck::reference
