// Freivalds' check accepts exact results and notices a single wrong element.
#include "reference/freivalds.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "gemm_problem.hpp"
#include "reference/mersenne61.hpp"

namespace numcheck::reference {
namespace {

using testing::GemmProblem;
using testing::integers;

GemmProblem integer_problem(const op::GemmParams& p) {
  GemmProblem problem{.gemm = p};
  problem.a = integers(p.batch * p.m * p.k, 1, 7);
  problem.b = integers(p.batch * p.k * p.n, 2, 7);
  problem.c = p.beta == 0 ? std::vector<double>() : integers(p.batch * p.m * p.n, 3, 100);
  problem.bias = p.bias ? integers(p.n, 4, 100) : std::vector<double>();
  return problem;
}

TEST(Mersenne61, residues_are_exact) {
  using mersenne61::add;
  using mersenne61::kPrime;
  using mersenne61::multiply;
  using mersenne61::residue;

  EXPECT_EQ(residue(0.0), 0U);
  EXPECT_EQ(residue(-0.0), 0U);
  EXPECT_EQ(residue(5.0), 5U);
  EXPECT_EQ(residue(-5.0), kPrime - 5);
  EXPECT_EQ(residue(0x1p61), 1U);
  EXPECT_EQ(residue(0x1p61 - 0x1p9), add(1, kPrime - 512));
  EXPECT_EQ(multiply(residue(0.5), 2), 1U);
  EXPECT_EQ(multiply(kPrime - 1, kPrime - 1), 1U);
  EXPECT_EQ(multiply(residue(0x1.8p-1000), residue(0x1p1000)), residue(1.5));
  EXPECT_EQ(multiply(residue(std::numeric_limits<double>::denorm_min()), multiply(residue(0x1p1000), residue(0x1p74))),
            1U);
}

TEST(Freivalds, accepts_exact_results_of_every_form) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      GemmProblem problem = integer_problem({.m = 70,
                                             .n = 33,
                                             .k = 130,
                                             .batch = 2,
                                             .trans_a = trans_a,
                                             .trans_b = trans_b,
                                             .alpha = 0.5,
                                             .beta = -2,
                                             .bias = true});
      problem.a_scale = 0.25;
      const std::vector<double> d = problem.output();

      EXPECT_TRUE(freivalds_holds(problem.request(), d)) << trans_a << trans_b;
      EXPECT_TRUE(gemm_reference().exact_holds(problem.request(), d));
    }
  }
}

TEST(Freivalds, finds_the_row_of_any_single_wrong_element) {
  GemmProblem problem = integer_problem({.m = 5, .n = 7, .k = 9, .batch = 2});
  std::vector<double> d = problem.output();
  for (std::size_t i = 0; i < d.size(); ++i) {
    for (const double error : {1.0, -1.0, 0x1p-20, 0x1p40}) {
      const double right = d[i];
      d[i] += error;
      EXPECT_FALSE(freivalds_holds(problem.request(), d)) << i;
      EXPECT_EQ(freivalds_wrong_row(problem.request(), d), static_cast<std::int64_t>(i / 7)) << i;
      d[i] = right;
    }
  }
  EXPECT_TRUE(freivalds_holds(problem.request(), d));
}

TEST(Freivalds, finds_what_checksums_miss) {
  GemmProblem problem = integer_problem({.m = 6, .n = 8, .k = 4, .trans_b = true});
  std::vector<double> d = problem.output();
  d[9] += 3;  // compensated within the row, so that row sums agree
  d[10] -= 3;
  EXPECT_FALSE(freivalds_holds(problem.request(), d));

  d = problem.output();
  ASSERT_NE(d[0], d[1]);
  std::swap(d[0], d[1]);
  EXPECT_FALSE(freivalds_holds(problem.request(), d));
}

TEST(Freivalds, non_finite_outputs_are_wrong) {
  GemmProblem problem = integer_problem({.m = 3, .n = 3, .k = 3});
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    std::vector<double> d = problem.output();
    d[4] = bad;
    EXPECT_EQ(freivalds_wrong_row(problem.request(), d), 1);
  }
}

TEST(Freivalds, empty_shapes_hold) {
  GemmProblem no_rows = integer_problem({.m = 0, .n = 3, .k = 2});
  EXPECT_TRUE(freivalds_holds(no_rows.request(), {}));
  GemmProblem no_terms = integer_problem({.m = 2, .n = 2, .k = 0});
  EXPECT_TRUE(freivalds_holds(no_terms.request(), std::vector<double>{0, 0, 0, 0}));
  EXPECT_FALSE(freivalds_holds(no_terms.request(), std::vector<double>{0, 0, 1, 0}));
}

TEST(Freivalds, refuses_what_it_cannot_check) {
  GemmProblem problem = integer_problem({.m = 2, .n = 2, .k = 2, .epilogue = "relu"});
  EXPECT_THROW((void)freivalds_holds(problem.request(), std::vector<double>(4)), core::InternalError);

  problem.gemm.epilogue = "none";
  EXPECT_THROW((void)freivalds_holds(problem.request(), std::vector<double>(3)), core::InternalError);

  problem.a[0] = std::numeric_limits<double>::infinity();
  EXPECT_THROW((void)freivalds_holds(problem.request(), std::vector<double>(4)), core::InternalError);
}

TEST(ExactHolds, compares_every_element_behind_relu) {
  GemmProblem problem = integer_problem({.m = 20, .n = 30, .k = 10, .epilogue = "relu"});
  std::vector<double> d = problem.output();
  EXPECT_TRUE(gemm_reference().exact_holds(problem.request(), d));

  d[333] += 1;
  EXPECT_FALSE(gemm_reference().exact_holds(problem.request(), d));
}

}  // namespace
}  // namespace numcheck::reference
