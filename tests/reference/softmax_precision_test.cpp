// Softmax and its gradient in double against 1200 bits.
#include <gtest/gtest.h>

#ifdef NUMCHECK_HAVE_MPFR

#include <cmath>

#include "big.hpp"
#include "softmax_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::Big;
using testing::noise;

TEST(SoftmaxPrecision, forward) {
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
        terms.push_back(exp(Big(each) * Big(scale)));
        sum = sum + terms.back();
      }
      for (std::size_t j = 0; j < columns; ++j) {
        const double exact = (terms[j] / sum).rounded();
        EXPECT_NEAR(y.value[j], exact, 1e-14 * exact) << sigma << " " << columns << " " << j;
      }
    }
  }
}

TEST(SoftmaxPrecision, backward) {
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
