// Arithmetic far more precise than double, for tests if MPFR is found.
#pragma once

#ifdef NUMCHECK_HAVE_MPFR

#include <mpfr.h>

namespace numcheck::reference::testing {

/// A number with 1200 bits, enough for something to be left of 1 + tanh(-290).
class Big {
 public:
  Big(double x = 0) {  // NOLINT(google-explicit-constructor): formulas mix both
    mpfr_init2(value_, 1200);
    mpfr_set_d(value_, x, MPFR_RNDN);
  }
  Big(const Big& other) : Big() { mpfr_set(value_, other.value_, MPFR_RNDN); }
  Big& operator=(const Big& other) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }
  ~Big() { mpfr_clear(value_); }

  friend Big operator+(const Big& a, const Big& b) { return made(mpfr_add, a, b); }
  friend Big operator-(const Big& a, const Big& b) { return made(mpfr_sub, a, b); }
  friend Big operator*(const Big& a, const Big& b) { return made(mpfr_mul, a, b); }
  friend Big operator/(const Big& a, const Big& b) { return made(mpfr_div, a, b); }
  friend Big pow(const Big& a, const Big& b) { return made(mpfr_pow, a, b); }
  friend Big exp(const Big& a) { return made(mpfr_exp, a); }
  friend Big tanh(const Big& a) { return made(mpfr_tanh, a); }
  friend Big erf(const Big& a) { return made(mpfr_erf, a); }
  friend Big sqrt(const Big& a) { return made(mpfr_sqrt, a); }
  friend Big sin(const Big& a) { return made(mpfr_sin, a); }
  friend Big cos(const Big& a) { return made(mpfr_cos, a); }
  [[nodiscard]] double rounded() const { return mpfr_get_d(value_, MPFR_RNDN); }

 private:
  template <class F>
  static Big made(F f, const Big& a, const Big& b) {
    Big out;
    f(out.value_, a.value_, b.value_, MPFR_RNDN);
    return out;
  }
  template <class F>
  static Big made(F f, const Big& a) {
    Big out;
    f(out.value_, a.value_, MPFR_RNDN);
    return out;
  }
  mpfr_t value_;
};

}  // namespace numcheck::reference::testing

#endif
