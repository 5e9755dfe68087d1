// What a softmax's errors are put down to: the rounding that made them, and nothing else.
#include "reference/softmax_diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "core/dtype.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kRows = 6, kColumns = 700;
constexpr core::Dtype kFormat = core::Dtype::bf16;

double rounded(double x) {
  return core::round_to(x, kFormat);
}

/// Exponentials of normal scores, with the largest score taken out.
std::vector<double> exponentials() {
  std::mt19937 engine(3);
  std::normal_distribution<double> normal;
  std::vector<double> e(kRows * kColumns);
  std::ranges::generate(e, [&] { return normal(engine); });
  for (std::size_t begin = 0; begin < e.size(); begin += kColumns) {
    const double largest = *std::max_element(e.begin() + begin, e.begin() + begin + kColumns);
    std::for_each(e.begin() + begin, e.begin() + begin + kColumns, [&](double& x) { x = std::exp(x - largest); });
  }
  return e;
}

/// Every element of `terms` divided by the sum of its row in `added`, and rounded.
std::vector<double> quotients(const std::vector<double>& terms, const std::vector<double>& added, bool round) {
  std::vector<double> y(terms.size());
  for (std::size_t begin = 0; begin < y.size(); begin += kColumns) {
    double sum = 0;
    std::for_each(added.begin() + begin, added.begin() + begin + kColumns, [&sum](double x) { sum += x; });
    for (std::size_t j = begin; j < begin + kColumns; ++j) {
      y[j] = round ? rounded(terms[j] / sum) : terms[j] / sum;
    }
  }
  return y;
}

std::string cause_of(const std::vector<double>& delivered, const std::vector<double>& e = exponentials()) {
  const std::vector<double> y = quotients(e, e, false);
  op::Values expected;
  op::OutputValues& output = expected.outputs.emplace_back();
  output.port = "y";
  output.value = core::Buffer<double>(y.size());
  std::ranges::copy(y, output.value.span().begin());
  const op::Delivered got{"y", delivered, kFormat, 1};
  const op::Sample all;
  op::FindingRequest request;
  request.expected = &expected;
  request.outputs = {&got, 1};
  request.sample = &all;
  const auto findings = diagnose_softmax(request, "y", kColumns);
  return findings.empty() ? "" : findings.front().cause;
}

std::vector<double> all_rounded(std::vector<double> x) {
  std::ranges::transform(x, x.begin(), rounded);
  return x;
}

TEST(SoftmaxDiagnosis, exponentials_that_are_rounded_are_named) {
  const std::vector<double> e = exponentials();
  EXPECT_EQ(cause_of(quotients(all_rounded(e), e, true)), "exponentials are rounded to bf16 before they are divided");
  EXPECT_EQ(cause_of(quotients(all_rounded(e), all_rounded(e), true)),
            "exponentials are rounded to bf16 before they are added and divided");
}

// Of the few elements in which the two differ, errors of the exponentials decide some.
TEST(SoftmaxDiagnosis, a_few_elements_do_not_decide_what_was_added) {
  const std::vector<double> e = exponentials();
  const std::vector<double> with_rounded_sum = quotients(all_rounded(e), all_rounded(e), true);
  std::vector<double> delivered = quotients(all_rounded(e), e, true);
  std::vector<std::size_t> different;
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    if (delivered[i] != with_rounded_sum[i]) {
      different.push_back(i);
    }
  }
  ASSERT_GT(different.size(), 20U);
  for (std::size_t i = 0; i < different.size(); ++i) {
    const bool is_other = i % 5 < 3;
    delivered[different[i]] = is_other ? with_rounded_sum[different[i]] : delivered[different[i]];
  }
  EXPECT_EQ(cause_of(delivered), "exponentials are rounded to bf16 before they are divided") << different.size();
}

/// Rows of the same 100 exponentials, e^-step j.
std::vector<double> few_exponentials(double step) {
  constexpr std::size_t kDifferent = 100;
  std::vector<double> e(kRows * kColumns);
  for (std::size_t i = 0; i < e.size(); ++i) {
    e[i] = std::exp(-step * static_cast<double>(i % kColumns % kDifferent));
  }
  return e;
}

// A row's elements with one exponential are rounded alike: however many they are, one error decides all of them.
TEST(SoftmaxDiagnosis, one_exponential_does_not_decide_what_was_added) {
  for (double step = 0.03; step < 0.06; step += 0.0003) {
    const std::vector<double> e = few_exponentials(step), terms = all_rounded(e);
    const std::vector<double> divided = quotients(terms, e, true), added = quotients(terms, terms, true);
    const std::vector<double> right = quotients(e, e, true);
    std::set<double> different;
    std::size_t count = 0;
    double left = 0, error = 0;
    for (std::size_t i = 0; i < e.size(); ++i) {
      if (divided[i] != added[i]) {
        different.insert(terms[i]);
        ++count;
      }
      left += (added[i] - divided[i]) * (added[i] - divided[i]);
      error += (added[i] - right[i]) * (added[i] - right[i]);
    }
    if (different.size() == 1 && left < 0.05 * error) {
      EXPECT_GT(count, 9U) << "three standard deviations of votes";
      EXPECT_EQ(cause_of(added, e), "exponentials are rounded to bf16 before they are divided") << step;
      return;
    }
  }
  FAIL() << "the case shows nothing";
}

// Where an exponential's quotient lies in the middle between two numbers, errors of FP32 decide for all elements that have it.
TEST(SoftmaxDiagnosis, a_quotient_in_the_middle_may_be_rounded_either_way) {
  for (double step = 1e-3; step < 2e-2; step += 1e-6) {
    const std::vector<double> e = few_exponentials(step), terms = all_rounded(e);
    std::vector<double> less = terms;
    std::ranges::transform(less, less.begin(), [](double x) { return x * (1 - 0x1p-22); });
    const std::vector<double> other = quotients(less, e, true);
    const auto squared_distance = [&other](const std::vector<double>& from) {
      return std::inner_product(other.begin(), other.end(), from.begin(), 0.0, std::plus<>(),
                                [](double x, double y) { return (x - y) * (x - y); });
    };
    const double left =
        std::min(squared_distance(quotients(terms, e, true)), squared_distance(quotients(terms, terms, true)));
    const double error = squared_distance(quotients(e, e, true));
    if (left > 0.2 * error) {
      EXPECT_NE(cause_of(other, e), "") << step;
      std::vector<double> off = other;
      std::ranges::transform(off, off.begin(), [](double x) { return x * 1.02; });
      EXPECT_EQ(cause_of(off, e), "") << step;
      return;
    }
  }
  FAIL() << "the case shows nothing";
}

TEST(SoftmaxDiagnosis, nothing_is_named_for_other_errors) {
  const std::vector<double> e = exponentials();
  const std::vector<double> right = quotients(e, e, true);
  EXPECT_EQ(cause_of(right), "") << "no error";
  std::vector<double> wrong = right;
  wrong[5] *= 2;
  EXPECT_EQ(cause_of(wrong), "") << "one element";
  wrong = quotients(e, e, false);
  std::ranges::for_each(wrong, [](double& x) { x = rounded(1.01 * x); });
  EXPECT_EQ(cause_of(wrong), "") << "a wrong scale";
  wrong = right;
  std::ranges::fill(wrong, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(cause_of(wrong), "") << "not a number";
  EXPECT_EQ(cause_of(std::vector<double>(right.size(), 0.0)), "") << "zeros";
}

}  // namespace
}  // namespace numcheck::reference
