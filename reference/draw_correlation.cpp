#include "reference/draw_correlation.hpp"

#include <unsupported/Eigen/FFT>

#include <bit>
#include <cmath>
#include <complex>
#include <vector>

namespace numcheck::reference {
namespace {

/// sum_n x_n x_(n+L) for every L below the number of draws.
std::vector<double> lagged_products(std::span<const float> x) {
  std::vector<double> padded(std::bit_ceil(2 * x.size()));  // so that the end is not compared with the beginning
  for (std::size_t n = 0; n < x.size(); ++n) {
    padded[n] = static_cast<double>(x[n]);
  }
  Eigen::FFT<double> transform;
  transform.SetFlag(Eigen::FFT<double>::HalfSpectrum);
  std::vector<std::complex<double>> spectrum;
  transform.fwd(spectrum, padded);
  for (std::complex<double>& wave : spectrum) {
    wave = std::norm(wave);
  }
  transform.inv(padded, spectrum);
  padded.resize(x.size());
  return padded;
}

}  // namespace

DrawCorrelation draw_correlation(std::span<const float> x, double probability, double one_in) {
  const std::vector<double> products = lagged_products(x);
  DrawCorrelation found;
  for (std::size_t lag = 1; lag < products.size(); ++lag) {
    if (std::fabs(products[lag]) > found.measured) {
      found.measured = std::fabs(products[lag]);
      found.lag = static_cast<std::int64_t>(lag);
    }
  }
  const double squares = products[0], other = 1 - probability;
  const double largest = std::fmax(probability, other) * std::fmax(probability, other);
  found.measured /= squares;
  found.limit =
      exceeded_by_chance(probability * other * squares, largest, one_in * static_cast<double>(products.size())) /
      squares;
  return found;
}

}  // namespace numcheck::reference
