// Ranges of k that are missing, doubled or read from elsewhere are named; other faults are not.
#include "reference/gemm_k_ranges.hpp"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "gemm_problem.hpp"

namespace numcheck::reference::testing {
namespace {

using core::Dtype;

/// A product whose element (i, j) is the sum of what `term` says of each t, and is stored in `dtype`.
struct Faulty {
  GemmProblem problem;
  Dtype dtype = Dtype::fp32;
  std::function<double(const GemmProblem&, std::int64_t i, std::int64_t t, std::int64_t j)> term;

  [[nodiscard]] std::string named() {
    const op::GemmParams& p = problem.gemm;
    std::vector<double> delivered;
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (std::int64_t t = 0; t < p.k; ++t) {
          sum += term(problem, i, t, j);
        }
        delivered.push_back(core::round_to(p.alpha * sum, dtype));
      }
    }
    const op::ReferenceRequest request = problem.request();
    const op::Values expected = gemm_reference().values(request);
    const std::vector<op::Delivered> outputs = {{"d", delivered, dtype, 1}};
    const op::Sample sample{problem.sample};
    const auto found = gemm_k_ranges({request.params, request.inputs, &expected, outputs, &sample});
    return found.empty() ? "" : found.front().cause;
  }
};

double product(const GemmProblem& p, std::int64_t i, std::int64_t t, std::int64_t j) {
  return p.first(0, i, t) * p.second(0, t, j);
}

/// Random operands between `low` and `low` + 2.
Faulty faulty(std::int64_t m, std::int64_t n, std::int64_t k, double low = -1) {
  Faulty f;
  f.problem.gemm = {.m = m, .n = n, .k = k};
  const auto noise = [low](std::int64_t size, std::uint64_t seed) {
    std::vector<double> values(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t bits = (seed + i) * 0x9e3779b97f4a7c15U;
      values[i] = core::round_to(static_cast<double>((bits ^ bits >> 29) * 0xbf58476d1ce4e5b9U >> 11) * 0x1p-52 + low,
                                 Dtype::bf16);
    }
    return values;
  };
  f.problem.a = noise(m * k, 1);
  f.problem.b = noise(k * n, 1'000'000);
  return f;
}

Faulty without(std::int64_t k, std::int64_t begin, std::int64_t end) {
  Faulty f = faulty(24, 20, k);
  f.term = [=](const GemmProblem& p, std::int64_t i, std::int64_t t, std::int64_t j) {
    return t >= begin && t < end ? 0 : product(p, i, t, j);
  };
  return f;
}

TEST(GemmKRanges, names_what_is_missing_to_the_element) {
  EXPECT_EQ(without(257, 256, 257).named(), "the last 1 of k is missing");
  EXPECT_EQ(without(300, 295, 300).named(), "the last 5 of k are missing");
  EXPECT_EQ(without(300, 0, 37).named(), "the first 37 of k are missing");
  EXPECT_EQ(without(300, 101, 163).named(), "k = 101 to 162 are missing");
  EXPECT_EQ(without(300, 77, 78).named(), "k = 77 is missing");
  EXPECT_EQ(without(300, 0, 300).named(), "all of k is missing");
  EXPECT_EQ(without(3001, 2999, 3001).named(), "the last 2 of k are missing");
  EXPECT_EQ(without(3001, 1501, 3001).named(), "the last 1500 of k are missing");
  EXPECT_EQ(without(1, 0, 1).named(),
            "1 of k is missing, or the scale is wrong (products that are all alike cannot tell)");
}

TEST(GemmKRanges, sees_through_the_rounding_of_the_output) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    Faulty f = without(2945, 2944, 2945);
    f.dtype = dtype;
    EXPECT_EQ(f.named(), "the last 1 of k is missing");
  }
}

TEST(GemmKRanges, small_outputs_and_long_sums) {
  Faulty small = without(2561, 2560, 2561);
  small.problem = faulty(8, 8, 2561).problem;
  EXPECT_EQ(small.named(), "the last 1 of k is missing");
  Faulty single = without(300, 299, 300);
  single.problem = faulty(1, 1, 300).problem;
  EXPECT_EQ(single.named(), "") << "one element is explained by chance";
  Faulty deep = without(200'000, 199'999, 200'000);
  deep.problem = faulty(8, 8, 200'000).problem;
  EXPECT_EQ(deep.named(), "the last 1 of k is missing");
}

TEST(GemmKRanges, zeros_leave_the_ends_as_short_as_they_can_be) {
  Faulty f = without(256, 192, 256);
  for (std::size_t i = 0; i < f.problem.a.size(); ++i) {
    f.problem.a[i] = i % 256 % 8 == 3 ? f.problem.a[i] : 0;
  }
  EXPECT_EQ(f.named(), "k = 195 to 251 are missing");
}

TEST(GemmKRanges, names_what_is_counted_twice) {
  Faulty f = faulty(24, 20, 200);
  f.term = [](const GemmProblem& p, std::int64_t i, std::int64_t t, std::int64_t j) {
    return (t >= 100 && t < 104 ? 2 : 1) * product(p, i, t, j);
  };
  EXPECT_EQ(f.named(), "k = 100 to 103 are counted twice");
}

TEST(GemmKRanges, names_what_is_read_from_elsewhere) {
  Faulty f = faulty(24, 20, 200);
  f.term = [](const GemmProblem& p, std::int64_t i, std::int64_t t, std::int64_t j) {
    return p.first(0, t >= 196 && i < 23 ? i + 1 : i, t) * p.second(0, t, j);
  };
  EXPECT_EQ(f.named(), "the last 4 of k are read from the next row of A");
  f.term = [](const GemmProblem& p, std::int64_t i, std::int64_t t, std::int64_t j) {
    return p.first(0, i, t) * p.second(0, t >= 192 ? t - 32 : t, j);
  };
  EXPECT_EQ(f.named(), "the last 8 of k of B are read from 32 earlier in k");
}

TEST(GemmKRanges, reads_every_layout_and_batch) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      Faulty f = without(96, 90, 96);
      f.problem.gemm.trans_a = trans_a;
      f.problem.gemm.trans_b = trans_b;
      f.problem.gemm.alpha = -0.5;
      EXPECT_EQ(f.named(), "the last 6 of k are missing") << trans_a << trans_b;
    }
  }
}

TEST(GemmKRanges, data_that_are_all_alike_tell_only_how_many) {
  Faulty f = without(64, 61, 64);
  f.problem.a.assign(f.problem.a.size(), 1);
  f.problem.b.assign(f.problem.b.size(), 1);
  EXPECT_EQ(f.named(), "3 of k are missing, or the scale is wrong (products that are all alike cannot tell)");
}

TEST(GemmKRanges, other_faults_have_no_range) {
  for (const double low : {-1.0, 0.0}) {
    Faulty f = faulty(24, 20, 200, low);
    f.term = [](const GemmProblem& p, std::int64_t i, std::int64_t t, std::int64_t j) {
      return 1.01 * product(p, i, t, j);
    };
    EXPECT_EQ(f.named(), "") << "a wrong scale";
    f.term = [](const GemmProblem& p, std::int64_t i, std::int64_t t, std::int64_t j) {
      return product(p, i ^ 1, t, j);
    };
    EXPECT_EQ(f.named(), "") << "swapped rows";
    f.term = [](const GemmProblem& p, std::int64_t i, std::int64_t t, std::int64_t j) {
      return product(p, i, t, j) + (t == 0 ? std::sin(static_cast<double>(7 * i + j * j)) : 0);
    };
    EXPECT_EQ(f.named(), "") << "something added";
    f.term = [](const GemmProblem& p, std::int64_t i, std::int64_t t, std::int64_t j) {
      return i == 3 && t == 5 ? 0 : product(p, i, t, j);
    };
    EXPECT_EQ(f.named(), "") << "too few elements to tell";
  }
}

TEST(GemmKRanges, nan_and_infinity_are_no_explanation) {
  Faulty f = without(64, 60, 64);
  f.problem.a[3] = std::nan("");
  f.problem.a[200] = INFINITY;
  EXPECT_NO_THROW(static_cast<void>(f.named()));
  f = faulty(8, 8, 16);
  f.term = [](const GemmProblem&, std::int64_t, std::int64_t, std::int64_t) { return std::nan(""); };
  EXPECT_EQ(f.named(), "");
}

}  // namespace
}  // namespace numcheck::reference::testing
