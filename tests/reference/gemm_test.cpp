// The GEMM reference on matrices small enough to check by hand, and its failure paths.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "gemm_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::GemmProblem;
using testing::noisy;
using Doubles = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// op(A) = [1 2 3; 4 5 6], op(B) = [1 0; -1 2; 2 1], product = [5 7; 11 16].
GemmProblem two_by_two(bool trans_a, bool trans_b) {
  GemmProblem problem{.gemm = {.m = 2, .n = 2, .k = 3, .trans_a = trans_a, .trans_b = trans_b}};
  problem.a = trans_a ? Doubles{1, 4, 2, 5, 3, 6} : Doubles{1, 2, 3, 4, 5, 6};
  problem.b = trans_b ? Doubles{1, -1, 2, 0, 2, 1} : Doubles{1, 0, -1, 2, 2, 1};
  return problem;
}

TEST(GemmReference, multiplies_every_combination_of_transposes) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      EXPECT_EQ(two_by_two(trans_a, trans_b).output(), (Doubles{5, 7, 11, 16})) << trans_a << trans_b;
    }
  }
}

TEST(GemmReference, applies_alpha_scales_beta_and_bias) {
  GemmProblem problem = two_by_two(false, true);
  problem.gemm.alpha = -2;
  problem.gemm.beta = 0.5;
  problem.gemm.bias = true;
  problem.a_scale = 0.25;
  problem.b_scale = 4;
  problem.c = {2, 4, 6, 8};
  problem.bias = {100, -100};

  EXPECT_EQ(problem.output(), (Doubles{-10 + 1 + 100, -14 + 2 - 100, -22 + 3 + 100, -32 + 4 - 100}));
}

TEST(GemmReference, every_row_and_column_may_have_a_scale) {
  GemmProblem problem = two_by_two(false, true);
  problem.gemm.scaling = "outer_vector";
  problem.a_scales = {2, 0.5};
  problem.b_scales = {1, -3};

  EXPECT_EQ(problem.output(), (Doubles{10, -42, 5.5, -24}));
}

// Both blocks of a row of A, of 128 and 2 elements, and those of two columns of B that share theirs.
GemmProblem of_blocks(std::string scaling) {
  GemmProblem problem{.gemm = {.m = 2, .n = 2, .k = 130, .trans_b = true}};
  problem.gemm.scaling = std::move(scaling);
  problem.a.assign(260, 1);
  problem.b.assign(260, 1);
  return problem;
}

TEST(GemmReference, scales_of_blocks_are_stored_block_by_block) {
  GemmProblem problem = of_blocks("1x128_1x128");
  problem.a_scales = {2, 3, 5, 7};  // row 0 and 1 of the first block, then of the second
  problem.b_scales = {1, 10, 100, 1000};

  EXPECT_EQ(problem.output(),
            (Doubles{2 * 128 + 5 * 2 * 100, 20 * 128 + 5 * 2 * 1000, 3 * 128 + 7 * 2 * 100, 30 * 128 + 7 * 2 * 1000}));
}

TEST(GemmReference, scales_of_large_blocks_are_stored_row_by_row) {
  GemmProblem problem = of_blocks("1x128_128x128");
  problem.a_scales = {2, 3, 5, 7};
  problem.b_scales = {1, 100};

  EXPECT_EQ(problem.output(), (Doubles{256 + 1000, 256 + 1000, 384 + 1400, 384 + 1400}));
}

// Two blocks of 16 and 2 elements, scales that lie row by row, and a number for each operand.
TEST(GemmReference, nvfp4_has_scales_of_blocks_and_of_operands) {
  GemmProblem problem{.gemm = {.m = 2, .n = 2, .k = 18, .trans_b = true}};
  problem.gemm.scaling = "nvfp4";
  problem.a.assign(36, 1.5);
  problem.b.assign(36, 2);
  problem.a_scales = {2, 3, 5, 7};
  problem.b_scales = {1, 100, -10, 1000};  // the sign is not read
  problem.a_scale = 0.5;
  problem.b_scale = 0.25;

  const auto sum = [](double first, double second) { return 0.125 * 3 * (16 * first + 2 * second); };
  EXPECT_EQ(problem.output(), (Doubles{sum(2, 300), sum(20, 3000), sum(5, 700), sum(50, 7000)}));
}

TEST(GemmReference, scales_of_nvfp4_are_e4m3_numbers) {
  GemmProblem problem = of_blocks("nvfp4");
  std::vector<double> draws = {-3.3, 0, kInfinity, 1e-30, 1e30, kNan};
  const op::Params params = op::to_params(problem.gemm);
  const op::Port port;
  gemm_reference().derive({&params, {}, &port}, draws);
  EXPECT_EQ(draws, (Doubles{3.25, 1, 1, 0x1p-9, 448, 1}));
}

TEST(GemmReference, scales_are_magnitudes_of_draws) {
  std::vector<double> draws = {-3, 0, kInfinity, 0.3, kNan};
  GemmProblem problem = of_blocks("1x128_1x128");
  op::Params params = op::to_params(problem.gemm);
  const op::Port port;
  gemm_reference().derive({&params, {}, &port}, draws);
  EXPECT_EQ(draws, (Doubles{3, 1, 1, static_cast<double>(0.3F), 1}));

  problem.gemm.power_of_two = true;
  params = op::to_params(problem.gemm);
  gemm_reference().derive({&params, {}, &port}, draws);
  EXPECT_EQ(draws, (Doubles{2, 1, 1, 0.25, 1}));
}

TEST(GemmReference, refuses_scales_that_do_not_fit) {
  GemmProblem problem = of_blocks("1x128_1x128");
  problem.a_scales = problem.b_scales = {1, 1, 1, 1};
  op::ReferenceRequest request = problem.request();
  request.inputs.back().cols = 1;
  EXPECT_THROW((void)gemm_reference().values(request), core::InternalError);
}

TEST(GemmReference, beta_zero_does_not_read_c) {
  GemmProblem problem = two_by_two(false, false);
  problem.c = {kNan, kNan, kNan, kNan};

  EXPECT_EQ(problem.output(), (Doubles{5, 7, 11, 16}));
}

TEST(GemmReference, bias_is_ignored_unless_requested) {
  GemmProblem problem = two_by_two(false, false);
  problem.bias = {kNan, kNan};

  EXPECT_EQ(problem.output(), (Doubles{5, 7, 11, 16}));
}

TEST(GemmReference, relu_keeps_what_is_positive) {
  GemmProblem problem = two_by_two(false, false);
  problem.gemm.epilogue = "relu";
  problem.gemm.bias = true;
  problem.bias = {-10, 1};

  EXPECT_EQ(problem.output(), (Doubles{0, 8, 1, 17}));
}

TEST(GemmReference, batches_are_independent) {
  GemmProblem problem{.gemm = {.m = 1, .n = 2, .k = 2, .batch = 3, .beta = 1, .bias = true}};
  problem.a = {1, 2, 3, 4, 5, 6};
  problem.b = {1, 0, 0, 1, 2, 0, 0, 2, 0, 1, 1, 0};
  problem.c = {10, 20, 30, 40, 50, 60};
  problem.bias = {100, 200};

  EXPECT_EQ(problem.output(), (Doubles{111, 222, 136, 248, 156, 265}));
}

TEST(GemmReference, gelu_matches_its_tanh_form_where_that_is_accurate) {
  for (const double z : {-1.5, -0.5, 0.0, 0.25, 1.0, 3.0}) {
    GemmProblem problem{.gemm = {.m = 1, .n = 1, .k = 1, .epilogue = "gelu"}};
    problem.a = {z};
    problem.b = {1};

    const double u = std::sqrt(2 / std::acos(-1.0)) * (z + 0.044715 * z * z * z);
    EXPECT_NEAR(problem.output()[0], z / 2 * (1 + std::tanh(u)), 4e-16 * (1 + std::abs(z))) << z;
  }
}

TEST(GemmReference, gelu_keeps_full_relative_accuracy_in_its_tail) {
  // The tanh form at -6 in 60 digits, by mpmath; in double, 1 + tanh(u) loses six of them.
  constexpr double kGeluOfMinusSix = -8.4396467007623e-11;
  GemmProblem problem{.gemm = {.m = 1, .n = 1, .k = 1, .epilogue = "gelu"}};
  problem.a = {-6};
  problem.b = {1};

  EXPECT_NEAR(problem.output()[0] / kGeluOfMinusSix, 1, 1e-13);
}

TEST(GemmReference, empty_dimensions) {
  GemmProblem no_rows{.gemm = {.m = 0, .n = 3, .k = 2}};
  no_rows.b = Doubles(6, 1.0);
  EXPECT_TRUE(no_rows.output().empty());

  GemmProblem no_terms{.gemm = {.m = 2, .n = 2, .k = 0, .beta = -1, .bias = true, .epilogue = "relu"}};
  no_terms.c = {1, -2, 3, -4};
  no_terms.bias = {2, 2};
  EXPECT_EQ(no_terms.output(), (Doubles{1, 4, 0, 6}));

  GemmProblem nothing{.gemm = {.m = 2, .n = 1, .k = 0}};
  EXPECT_EQ(nothing.output(), (Doubles{0, 0}));
}

TEST(GemmReference, empty_output_has_amax_zero) {
  GemmProblem problem{.gemm = {.m = 0, .n = 0, .k = 0, .output = "fp8_e4m3"}};

  EXPECT_EQ(problem.output("d_amax"), (Doubles{0}));
}

TEST(GemmReference, amax_follows_the_epilogue_and_skips_nan) {
  GemmProblem problem = two_by_two(false, false);
  problem.gemm.output = "fp8_e5m2";
  problem.gemm.alpha = -1;
  EXPECT_EQ(problem.output("d_amax"), (Doubles{16}));

  problem.gemm.epilogue = "relu";
  EXPECT_EQ(problem.output("d_amax"), (Doubles{0}));

  problem.gemm.epilogue = "none";
  problem.a[3] = kNan;
  EXPECT_EQ(problem.output("d_amax"), (Doubles{7}));
}

TEST(GemmReference, nan_and_infinities_propagate) {
  GemmProblem problem = two_by_two(false, false);
  problem.a = {kInfinity, 2, 3, 4, kNan, 6};
  const Doubles d = problem.output();

  EXPECT_EQ(d[0], kInfinity);
  EXPECT_TRUE(std::isnan(d[1]));  // inf * 0
  EXPECT_TRUE(std::isnan(d[2]));
  EXPECT_TRUE(std::isnan(d[3]));
}

TEST(GemmReference, bits_do_not_depend_on_the_number_of_threads) {
  const int before = core::thread_count();
  for (const op::GemmParams& p :
       {op::GemmParams{.m = 300, .n = 700, .k = 65}, op::GemmParams{.m = 9, .n = 17, .k = 40000, .trans_a = true}}) {
    core::set_thread_count(1);
    const Doubles one = noisy(p).output();
    core::set_thread_count(3);
    const Doubles three = noisy(p).output();
    EXPECT_EQ(one, three) << p.k;
  }
  core::set_thread_count(before);
}

TEST(GemmReference, sample_equals_the_full_result) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      GemmProblem problem = noisy({.m = 37,
                                   .n = 53,
                                   .k = 4500,
                                   .batch = 2,
                                   .trans_a = trans_a,
                                   .trans_b = trans_b,
                                   .alpha = 0.5,
                                   .beta = 2,
                                   .bias = true,
                                   .epilogue = "gelu",
                                   .output = "fp8_e4m3"});
      const Doubles full = problem.output();
      problem.sample = {0, 1, 52, 53, 1960, 1961, 1961, 2000, 3921};
      const Doubles sampled = problem.output();

      ASSERT_EQ(sampled.size(), problem.sample.size());
      for (std::size_t s = 0; s < sampled.size(); ++s) {
        EXPECT_NEAR(sampled[s], full[static_cast<std::size_t>(problem.sample[s])], 1e-12) << problem.sample[s];
      }
      EXPECT_TRUE(problem.output("d_amax").empty());
    }
  }
}

TEST(GemmReference, refuses_operands_that_do_not_fit) {
  GemmProblem missing = two_by_two(false, false);
  missing.gemm.beta = 1;
  EXPECT_THROW((void)missing.output(), core::InternalError);

  GemmProblem outside = two_by_two(false, false);
  outside.sample = {4};
  EXPECT_THROW((void)outside.output(), core::InternalError);
  outside.sample = {-1};
  EXPECT_THROW((void)outside.output(), core::InternalError);

  GemmProblem misshapen = two_by_two(false, false);
  op::ReferenceRequest request = misshapen.request();
  request.inputs[0].rows = 3;
  EXPECT_THROW((void)gemm_reference().values(request), core::InternalError);

  request = misshapen.request();
  request.inputs[1].data = nullptr;
  EXPECT_THROW((void)gemm_reference().values(request), core::InternalError);
}

TEST(GemmReference, version_names_what_multiplies) {
  EXPECT_GT(gemm_reference().version.size(), std::string_view("gemm/1 ").size());
}

}  // namespace
}  // namespace numcheck::reference
