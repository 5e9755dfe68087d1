// The forward normalisations, element by element, over a scalar: double, tolerance::Tracked, or several of these. Nothing here
// overflows: norm_rows.hpp has what becomes of numbers that do.
#pragma once

namespace numcheck::reference {

/// (x - mean)^2
template <class Scalar>
Scalar centred_square(const Scalar& x, const Scalar& mean) {
  const Scalar centred = x - mean;
  return centred * centred;
}

/// x^2
template <class Scalar>
Scalar square_of(const Scalar& x) {
  return x * x;
}

/// (x - mean) rsigma
template <class Scalar>
Scalar normalised_element(const Scalar& x, const Scalar& mean, const Scalar& rsigma) {
  return (x - mean) * rsigma;
}

/// (x - mean) rsigma gamma' + beta
template <class Scalar>
Scalar layernorm_output(const Scalar& x, const Scalar& mean, const Scalar& rsigma, const Scalar& factor,
                        const Scalar& beta) {
  return normalised_element(x, mean, rsigma) * factor + beta;
}

/// x rsigma gamma'
template <class Scalar>
Scalar rmsnorm_output(const Scalar& x, const Scalar& rsigma, const Scalar& factor) {
  return x * rsigma * factor;
}

}  // namespace numcheck::reference
