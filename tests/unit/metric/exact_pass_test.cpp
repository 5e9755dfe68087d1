// Outputs that are defined bit for bit: what the pass of right ones says is what the pass of all outputs says, with the same bits for
// every number of threads and every instruction set.
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

void add_norms(const ErrorNorms& n, std::vector<double>& out) {
  out.insert(out.end(),
             {n.max_abs, n.max_rel, n.l1, n.l2, n.linf, n.rel_l2, n.rms, n.mean_signed, n.nmse, n.sqnr_db, n.cosine});
}

/// Every number that a report has.
std::vector<double> reported(const Statistics& s) {
  std::vector<double> out = {s.rms_expected,
                             s.effective_bits,
                             s.max_ulp,
                             s.mean_ulp,
                             s.max_ulp_at_rms.value_or(-1),
                             s.flip_rate.value_or(-1),
                             s.flip_rate_predicted.value_or(-1),
                             s.residual_distance.value_or(-1),
                             s.max_over_bound,
                             s.z_rms,
                             s.z_q999,
                             s.z_max,
                             s.slope,
                             s.slope_se,
                             s.intercept,
                             s.toward_zero,
                             s.rounding_ratio,
                             s.rounding_ratio_perfect,
                             s.rounding_sd,
                             s.rounding_arith,
                             s.max_over_half_ulp,
                             s.torch_allclose.max_excess,
                             s.numpy_allclose.max_excess,
                             s.te_compare.max_excess};
  add_norms(s.arithmetic, out);
  add_norms(s.total, out);
  for (const std::uint64_t count :
       {s.elements, s.finite, s.nonfinite_mismatch, s.poison, s.zeros_got, s.exact_mismatch, s.rounding_elements,
        s.torch_allclose.mismatches, s.numpy_allclose.mismatches, s.te_compare.mismatches}) {
    out.push_back(static_cast<double>(count));
  }
  out.insert(out.end(), s.ulp_histogram.begin(), s.ulp_histogram.end());
  out.insert(out.end(), s.z_histogram.begin(), s.z_histogram.end());
  for (const Worst& worst : s.worst) {
    out.insert(out.end(), {static_cast<double>(worst.index), worst.got, worst.expected, worst.ulps, worst.over_bound});
  }
  return out;
}

/// A cast of numbers with few bits, as FP32 products are, some of them halfway between two numbers, and zeros of both signs.
Problem cast(Dtype dtype, const Shape& shape) {
  Problem p = make_problem(dtype, shape, 0, 51);
  const bool narrow = core::dtype_info(dtype).storage_bytes < 4;
  for (std::size_t i = 0; i < p.expected.size(); ++i) {
    double& y = p.expected[i];
    y = i % 97 == 5 ? 0.0 : i % 97 == 6 ? -0.0 : i % 97 == 7 ? 17.0 : static_cast<double>(static_cast<float>(y));
    p.set_got(static_cast<std::int64_t>(i), y);
    y = narrow ? y : p.got_at(static_cast<std::int64_t>(i));
  }
  p.unrounded = p.expected;
  for (double& y : p.unrounded) {
    y *= 1.001;
  }
  p.magnitude = p.deviation = {};
  p.model = {};
  p.model.exact = true;
  p.model.output = dtype;
  p.model.bound_magnitude = p.model.var_second = 1;
  p.model.kappa = 2;
  if (core::dtype_info(dtype).storage_bytes == 1) {
    p.model.bound_value = 0x1p-24;
    p.model.var_value = 0.18 * 0x1p-48;
  }
  return p;
}

class ExactPass : public testing::TestWithParam<Dtype> {
 protected:
  void TearDown() override {
    core::set_thread_count(threads_);
    core::force_isa(isa_);
  }

 private:
  int threads_ = core::thread_count();
  core::Isa isa_ = core::active_isa();
};

TEST_P(ExactPass, says_what_the_pass_of_all_outputs_says) {
  for (const Shape& shape : {Shape{2, 131, 1201, 3, 1}, Shape{1, 3, 70001, 0, 0}, Shape{1, 64, 1024, 0, 0}}) {
    const Problem p = cast(GetParam(), shape);
    const Statistics quick = compare(p.input());
    EXPECT_TRUE(quick.bits_hold);
    Problem with_yardsticks = p;
    with_yardsticks.magnitude.assign(p.expected.size(), 0.0F);
    with_yardsticks.deviation = with_yardsticks.magnitude;
    const Statistics full = compare(with_yardsticks.input());
    EXPECT_FALSE(full.bits_hold);
    const std::vector<double> one = reported(quick), other = reported(full);
    ASSERT_EQ(one.size(), other.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_TRUE(one[i] == other[i] || std::fabs(one[i] - other[i]) <= 1e-12 * std::fabs(other[i]))
          << "number " << i << ": " << one[i] << ", not " << other[i];
    }
  }
}

TEST_P(ExactPass, has_the_same_bits_everywhere) {
  const Problem p = cast(GetParam(), {2, 131, 1201, 3, 1});
  std::optional<std::vector<double>> first;
  for (const int threads : {1, 3}) {
    for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
      core::set_thread_count(threads);
      core::force_isa(isa);
      const std::vector<double> numbers = reported(compare(p.input()));
      first = first.value_or(numbers);
      EXPECT_EQ(numbers, *first);
    }
  }
}

TEST_P(ExactPass, leaves_what_is_wrong_to_the_pass_of_all_outputs) {
  const Shape shape{1, 40, 300, 1, 0};
  const auto changed = [&](const auto& change) {
    Problem p = cast(GetParam(), shape);
    change(p);
    return compare(p.input());
  };
  const Statistics number = changed([](Problem& p) { p.set_got(777, 2 * p.expected[777]); });
  EXPECT_FALSE(number.bits_hold);
  EXPECT_EQ(number.exact_mismatch, 1);
  const Statistics nan = changed([](Problem& p) { p.set_got(778, std::numeric_limits<double>::quiet_NaN()); });
  EXPECT_FALSE(nan.bits_hold);
  EXPECT_EQ(nan.nonfinite_mismatch, 1);
  const Statistics sign = changed([](Problem& p) { p.set_got(5, -0.0); });
  EXPECT_FALSE(sign.bits_hold);  // the numbers are equal: verdict/exact_bits counts it
  EXPECT_EQ(sign.exact_mismatch, 0);
  const Statistics last = changed([](Problem& p) { p.set_got(p.port.elements() - 1, 100); });
  EXPECT_FALSE(last.bits_hold);
  EXPECT_EQ(last.exact_mismatch, 1);
}

INSTANTIATE_TEST_SUITE_P(Formats, ExactPass,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3, Dtype::fp8_e5m2),
                         [](const auto& format) { return std::string(core::dtype_info(format.param).name); });

}  // namespace
}  // namespace numcheck::metric
