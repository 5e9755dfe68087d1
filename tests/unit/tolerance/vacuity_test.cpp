// The certificate: garbage is rejected if it can be told apart, dropped if it cannot, accepted if gates are blind.
#include "tolerance/vacuity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/unit/metric/problem.hpp"

namespace numcheck::tolerance {
namespace {

using core::Dtype;
using metric::make_problem;
using metric::Problem;
using Outcome = Fake::Outcome;

std::map<std::string, Fake> fakes_of(const metric::CompareInput& input) {
  std::map<std::string, Fake> out;
  for (const Fake& fake : certify(input).fakes) {
    out[fake.name] = fake;
  }
  return out;
}

Problem random_problem(Dtype dtype, const metric::Shape& shape) {
  Problem p = make_problem(dtype, shape, 1e-6, 3);
  p.model.reduction = 64;
  return p;
}

TEST(Certificate, every_fake_of_an_ordinary_output_is_rejected) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    const Problem p = random_problem(dtype, {2, 100, 70, 3, 1});
    const Certificate certificate = certify(p.input());
    EXPECT_EQ(certificate.fakes.size(), 12U);
    for (const Fake& fake : certificate.fakes) {
      EXPECT_EQ(fake.outcome, Outcome::rejected) << fake.name << ": " << fake.detail;
      EXPECT_FALSE(fake.detail.empty());
    }
    EXPECT_EQ(certificate.vacuous_with(), "");
  }
}

TEST(Certificate, coarser_format_is_the_first_that_can_be_told) {
  EXPECT_EQ(fakes_of(random_problem(Dtype::fp32, {1, 64, 64}).input())["coarser_format"].detail.substr(0, 5), "tf32:");
  EXPECT_EQ(fakes_of(random_problem(Dtype::bf16, {1, 64, 64}).input())["coarser_format"].detail.substr(0, 9),
            "fp8_e4m3:");
  EXPECT_EQ(fakes_of(random_problem(Dtype::fp8_e4m3, {1, 64, 64}).input())["coarser_format"].outcome, Outcome::dropped);
}

TEST(Certificate, blind_gates_are_exposed) {
  Problem p = random_problem(Dtype::fp32, {1, 64, 64});
  p.model.bound_magnitude = 10;
  p.model.slope_slack = 1;                    // zeros lose all of y
  for (const double variance : {0.1, 1.0}) {  // A is about 45, y about 8: outputs of that size pass
    p.model.var_magnitude = variance;
    EXPECT_EQ(certify(p.input()).vacuous_with(), "zeros") << variance;
  }
  auto fakes = fakes_of(p.input());
  EXPECT_EQ(fakes["last_k_block"].outcome, Outcome::dropped) << "a small part of an uncertain sum";
}

TEST(Certificate, fakes_that_equal_the_reference_are_dropped) {
  Problem p = make_problem(Dtype::fp32, {1, 1, 1}, 0, 5);
  p.model.reduction = 1;
  auto fakes = fakes_of(p.input());
  EXPECT_EQ(fakes["mean"].outcome, Outcome::dropped);
  EXPECT_EQ(fakes["transposed"].outcome, Outcome::dropped);
  EXPECT_EQ(fakes["last_k_block"].outcome, Outcome::dropped);
  EXPECT_EQ(fakes["zeros"].outcome, Outcome::rejected);
  EXPECT_EQ(fakes["sign_flipped"].outcome, Outcome::rejected);
}

TEST(Certificate, all_zero_outputs) {
  Problem p = make_problem(Dtype::bf16, {1, 20, 20}, 0, 5);
  std::fill(p.expected.begin(), p.expected.end(), 0.0);
  for (const auto& [name, fake] : fakes_of(p.input())) {
    EXPECT_NE(fake.outcome, Outcome::accepted) << name;
  }
}

TEST(Certificate, exact_leg_rejects_any_difference) {
  Problem p = make_problem(Dtype::bf16, {1, 70, 70}, 0, 5);
  for (std::size_t i = 0; i < p.expected.size(); ++i) {
    p.expected[i] = static_cast<double>(static_cast<int>(i % 29) - 14);
  }
  p.magnitude.clear();
  p.deviation.clear();
  p.model = {.exact = true, .output = Dtype::bf16, .reduction = 64};
  auto fakes = fakes_of(p.input());
  EXPECT_FALSE(fakes.contains("coarser_format"));
  for (const auto& [name, fake] : fakes) {
    EXPECT_EQ(fake.outcome, Outcome::rejected) << name;
    EXPECT_EQ(fake.detail, name == "nan" || name == "infinity" ? "G0 pattern" : "exact") << name;
  }
}

TEST(Certificate, non_finite_elements_are_no_evidence) {
  Problem p = random_problem(Dtype::fp32, {1, 40, 40});
  std::fill(p.expected.begin(), p.expected.end(), std::numeric_limits<double>::quiet_NaN());
  for (const auto& [name, fake] : fakes_of(p.input())) {
    const bool replaces_nan = name == "constant" || name == "infinity";
    EXPECT_EQ(fake.outcome, replaces_nan ? Outcome::rejected : Outcome::dropped) << name << ": " << fake.detail;
  }
}

TEST(Certificate, garbage_in_elements_that_are_not_judged_is_exposed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Problem p = random_problem(Dtype::fp32, {1, 40, 40});
  std::fill(p.magnitude.begin(), p.magnitude.end(), static_cast<float>(nan));
  auto fakes = fakes_of(p.input());
  for (const char* name : {"zeros", "constant", "mean", "sign_flipped", "noise"}) {
    EXPECT_EQ(fakes[name].outcome, Outcome::accepted) << name << ": a NaN bound is not an agreement";
  }
  p = random_problem(Dtype::fp32, {1, 40, 40});
  p.model.overflow_magnitude = 0;
  EXPECT_EQ(fakes_of(p.input())["nan"].outcome, Outcome::accepted) << "NaN passes where overflow excuses it";
}

TEST(Certificate, missing_tail_of_the_caller_is_used) {
  Problem p = random_problem(Dtype::fp32, {1, 64, 64});
  metric::CompareInput in = p.input();
  in.missing_tail = p.expected;
  EXPECT_EQ(fakes_of(in)["last_k_block"].outcome, Outcome::dropped) << "nothing is missing";
  const std::vector<double> wrong(3);
  in.missing_tail = wrong;
  EXPECT_THROW((void)certify(in), core::InternalError);
}

TEST(Certificate, looks_at_few_outputs_of_a_large_one) {
  op::Port port{.name = "d", .dtype = Dtype::fp32};
  port.batch = 3;
  port.rows = 4000;
  port.cols = 5000;
  port.ld = 5000;
  const op::Sample sample = certificate_sample(port, nullptr);
  EXPECT_LE(sample.indices.size(), 65'536U);
  EXPECT_GT(sample.indices.size(), 60'000U);
  EXPECT_TRUE(std::is_sorted(sample.indices.begin(), sample.indices.end()));
  EXPECT_LT(sample.indices.back(), port.elements());
  port.batch = 1;
  port.rows = 1;
  port.cols = port.ld = 1'000'000;
  EXPECT_EQ(certificate_sample(port, nullptr).indices.size(), 65'536U);
  port.rows = 0;
  EXPECT_TRUE(certificate_sample(port, nullptr).indices.empty());
}

TEST(Certificate, follows_a_sample) {
  Problem p = random_problem(Dtype::bf16, {1, 100, 100});
  for (std::int64_t i = 0; i < p.port.elements(); i += 2) {
    const auto at = static_cast<std::size_t>(i);
    p.sample.indices.push_back(i);
    p.expected[at / 2] = p.expected[at];
    p.magnitude[at / 2] = p.magnitude[at];
    p.deviation[at / 2] = p.deviation[at];
  }
  p.expected.resize(5000);
  p.magnitude.resize(5000);
  p.deviation.resize(5000);
  auto fakes = fakes_of(p.input());
  EXPECT_EQ(fakes["transposed"].outcome, Outcome::dropped);
  EXPECT_EQ(fakes["zeros"].outcome, Outcome::rejected);
  EXPECT_EQ(fakes["noise"].outcome, Outcome::rejected);
  EXPECT_EQ(fakes["tile_zeroed"].outcome, Outcome::rejected);
}

}  // namespace
}  // namespace numcheck::tolerance
