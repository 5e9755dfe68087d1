// Softmax and its gradient in double against 400 bits.
#include <gtest/gtest.h>

#ifdef NUMCHECK_HAVE_MPFR

#include <mpfr.h>

#include <cmath>

#include "softmax_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::noise;

/// A number of 400 bits.
class Big {
 public:
  Big(double x = 0) {  // NOLINT(google-explicit-constructor): formulas mix both
    mpfr_init2(value_, 400);
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
  friend Big exponential(const Big& a) {
    Big out;
    mpfr_exp(out.value_, a.value_, MPFR_RNDN);
    return out;
  }
  [[nodiscard]] double rounded() const { return mpfr_get_d(value_, MPFR_RNDN); }

 private:
  template <class F>
  static Big made(F f, const Big& a, const Big& b) {
    Big out;
    f(out.value_, a.value_, b.value_, MPFR_RNDN);
    return out;
  }
  mpfr_t value_;
};

TEST(SoftmaxPrecision, Forward) {
  for (const double sigma : {0.01, 1.0, 5.0}) {
    for (const std::size_t columns : {2U, 100U, 5000U}) {
      const std::vector<double> x = noise(columns, 11, sigma);
      op::SoftmaxFwdParams p = testing::rows_of(1, static_cast<std::int64_t>(columns));
      p.scale = 1.7;
      const op::OutputValues y = testing::forward(p, {{"x", x}});
      const auto scale = static_cast<double>(1.7F);
      std::vector<Big> terms;
      Big sum;
      for (const double each : x) {
        terms.push_back(exponential(Big(each) * Big(scale)));
        sum = sum + terms.back();
      }
      for (std::size_t j = 0; j < columns; ++j) {
        const double exact = (terms[j] / sum).rounded();
        EXPECT_NEAR(y.value[j], exact, 1e-14 * exact) << sigma << " " << columns << " " << j;
      }
    }
  }
}

TEST(SoftmaxPrecision, Backward) {
  for (const std::size_t columns : {2U, 100U, 5000U}) {
    const std::vector<double> dy = noise(columns, 12);
    std::vector<double> y = noise(columns, 13);
    for (double& each : y) {
      each = static_cast<double>(static_cast<float>(std::fabs(each) / static_cast<double>(columns)));
    }
    op::SoftmaxBwdParams p = testing::gradient_rows_of(1, static_cast<std::int64_t>(columns));
    p.scale = 0.3;
    const op::OutputValues dx = testing::backward(p, {{"dy", dy}, {"y", y}});
    Big sum;
    double magnitude = 0;
    for (std::size_t j = 0; j < columns; ++j) {
      sum = sum + Big(dy[j]) * Big(y[j]);
      magnitude += std::fabs(dy[j] * y[j]);
    }
    const auto scale = static_cast<double>(0.3F);
    for (std::size_t j = 0; j < columns; ++j) {
      const double exact = (Big(scale) * (Big(dy[j]) * Big(y[j]) - Big(y[j]) * sum)).rounded();
      const double terms = scale * y[j] * (std::fabs(dy[j]) + magnitude);
      EXPECT_NEAR(dx.value[j], exact, 1e-14 * terms) << columns << " " << j;
    }
  }
}

}  // namespace
}  // namespace numcheck::reference

#endif
