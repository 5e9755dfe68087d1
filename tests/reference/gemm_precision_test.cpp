// The GEMM reference against arithmetic more precise than double.
#include <cmath>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "gemm_problem.hpp"
#include "reference/gemm_check.hpp"
#include "reference/twofold.hpp"
#ifdef NUMCHECK_HAVE_MPFR
#include <mpfr.h>
#endif

namespace numcheck::reference {
namespace {

using testing::GemmProblem;
using testing::noisy;

#ifdef NUMCHECK_HAVE_MPFR

class Mpfr {
 public:
  Mpfr() {
    mpfr_init2(value_, 400);
    mpfr_set_zero(value_, 1);
  }
  Mpfr(const Mpfr&) = delete;
  Mpfr& operator=(const Mpfr&) = delete;
  ~Mpfr() { mpfr_clear(value_); }
  mpfr_ptr get() { return value_; }
  double rounded() { return mpfr_get_d(value_, MPFR_RNDN); }

 private:
  mpfr_t value_;
};

struct Accurate {
  double z;
  double magnitude;
};

/// Z and A of one output in 400 bits.
Accurate accurate_output(const GemmProblem& problem, std::int64_t batch, std::int64_t i, std::int64_t j) {
  const op::GemmParams& p = problem.gemm;
  Mpfr sum;
  Mpfr magnitude;
  Mpfr term;
  for (std::int64_t t = 0; t < p.k; ++t) {
    mpfr_set_d(term.get(), problem.first(batch, i, t), MPFR_RNDN);
    mpfr_mul_d(term.get(), term.get(), problem.second(batch, t, j), MPFR_RNDN);
    mpfr_add(sum.get(), sum.get(), term.get(), MPFR_RNDN);
    mpfr_abs(term.get(), term.get(), MPFR_RNDN);
    mpfr_add(magnitude.get(), magnitude.get(), term.get(), MPFR_RNDN);
  }
  for (const double factor : {p.alpha, problem.a_scale, problem.b_scale}) {
    mpfr_mul_d(sum.get(), sum.get(), factor, MPFR_RNDN);
    mpfr_mul_d(magnitude.get(), magnitude.get(), std::abs(factor), MPFR_RNDN);
  }
  const auto flat = static_cast<std::size_t>((batch * p.m + i) * p.n + j);
  const auto add = [&](double x, double y) {
    mpfr_set_d(term.get(), x, MPFR_RNDN);
    mpfr_mul_d(term.get(), term.get(), y, MPFR_RNDN);
    mpfr_add(sum.get(), sum.get(), term.get(), MPFR_RNDN);
    mpfr_abs(term.get(), term.get(), MPFR_RNDN);
    mpfr_add(magnitude.get(), magnitude.get(), term.get(), MPFR_RNDN);
  };
  if (p.beta != 0) {
    add(p.beta, problem.c[flat]);
  }
  if (p.bias) {
    add(1, problem.bias[static_cast<std::size_t>(j)]);
  }
  return {sum.rounded(), magnitude.rounded()};
}

TEST(GemmPrecision, agrees_with_400_bits) {
  for (const op::GemmParams& p : {
           op::GemmParams{.m = 13, .n = 11, .k = 1000, .batch = 2, .trans_a = true, .beta = 0.7, .bias = true},
           op::GemmParams{.m = 5, .n = 21, .k = 20000, .trans_b = true, .alpha = 1.0 / 3},
       }) {
    GemmProblem problem = noisy(p);
    problem.a_scale = 0.1;
    problem.b_scale = 1.7;
    const std::vector<double> d = problem.output();
    std::size_t flat = 0;
    for (std::int64_t batch = 0; batch < p.batch; ++batch) {
      for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) {
          const Accurate want = accurate_output(problem, batch, i, j);
          ASSERT_NEAR(d[flat], want.z, 1e-14 * want.magnitude) << flat;
          ++flat;
        }
      }
    }
  }
}

#endif

// Both products of the pairs (x, 1), (-x, 1), (e, 1) cancel: a plain double sum loses e, the twofold sum does not.
TEST(Twofold, survives_cancellation) {
  GemmProblem problem{.gemm = {.m = 1, .n = 1, .k = 3}};
  problem.a = {0x1p60, 1.25, -0x1p60};
  problem.b = {1, 1, 1};
  const op::ReferenceRequest request = problem.request();

  const TwofoldOutput output = twofold_output(gemm_operands(request), 0);

  EXPECT_EQ(output.z, 1.25);
  EXPECT_EQ(output.magnitude, 0x1p61);
}

TEST(Twofold, keeps_the_low_half_of_a_product) {
  GemmProblem problem{.gemm = {.m = 1, .n = 1, .k = 2}};
  problem.a = {1 + 0x1p-30, -1};
  problem.b = {1 + 0x1p-30, 1 + 0x1p-29};
  const op::ReferenceRequest request = problem.request();

  EXPECT_EQ(twofold_output(gemm_operands(request), 0).z, 0x1p-60);
}

// A product computed in FP32, and one with a single wrong element among few, must not pass for a double reference.
TEST(CheckAgainstTwofold, notices_lost_precision_and_wrong_elements) {
  GemmProblem problem = noisy({.m = 7, .n = 9, .k = 300, .beta = 1, .epilogue = "gelu"});
  const op::ReferenceRequest request = problem.request();
  const GemmOperands operands = gemm_operands(request);
  const std::vector<double> d = problem.output();
  EXPECT_NO_THROW(check_against_twofold(operands, d, {}));

  std::vector<double> rounded = d;
  for (double& x : rounded) {
    x = static_cast<float>(x);
  }
  EXPECT_THROW(check_against_twofold(operands, rounded, {}), core::InternalError);

  std::vector<double> wrong = d;
  wrong[61] += 1e-9;
  EXPECT_THROW(check_against_twofold(operands, wrong, {}), core::InternalError);
  wrong[61] = std::nan("");
  EXPECT_THROW(check_against_twofold(operands, wrong, {}), core::InternalError);

  const std::vector<std::int64_t> indices = {3, 61};
  EXPECT_NO_THROW(check_against_twofold(operands, std::vector<double>{d[3], d[61]}, indices));
  EXPECT_THROW(check_against_twofold(operands, std::vector<double>{d[61], d[3]}, indices), core::InternalError);
}

}  // namespace
}  // namespace numcheck::reference
