// The references of LayerNorm and RMSNorm in double against 1200 bits.
#include <gtest/gtest.h>

#ifdef NUMCHECK_HAVE_MPFR

#include <algorithm>
#include <cmath>

#include "big.hpp"
#include "norm_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::Big;
using testing::evaluate;
using testing::Inputs;
using testing::noise;
using testing::problem_of;
using testing::rows_of;
using testing::value_of;
using Numbers = std::vector<double>;
using Bigs = std::vector<Big>;

constexpr double kEpsilon = 1e-5;

Big epsilon() {
  return static_cast<double>(static_cast<float>(kEpsilon));
}

Big mean_of(const Bigs& x) {
  Big sum;
  for (const Big& each : x) {
    sum = sum + each;
  }
  return sum / Big(static_cast<double>(x.size()));
}

/// mu (0 without `centred`) and rsigma of one row.
struct Statistics {
  Big mu;
  Big rsigma;
};

Statistics statistics_of(const Bigs& x, bool centred) {
  const Big mu = centred ? mean_of(x) : Big();
  Bigs squares;
  for (const Big& each : x) {
    squares.push_back((each - mu) * (each - mu));
  }
  return {mu, Big(1) / sqrt(mean_of(squares) + epsilon())};
}

struct Shape {
  std::size_t columns;
  double sigma;
  double mean;
};

// Means far from zero: E x^2 - mean^2 would lose all digits.
const std::vector<Shape> kShapes = {{1, 1, 0},    {3, 1, 0},        {192, 0.001, 0},   {193, 1, 1000},
                                    {4096, 1, 0}, {1000, 0.5, 1e6}, {1000, 1e3, -1e7}, {257, 1e-4, 16}};

Inputs rows_with(const Shape& shape) {
  return {{"x", noise(shape.columns, 1, shape.sigma, shape.mean)},
          {"gamma", noise(shape.columns, 2)},
          {"beta", noise(shape.columns, 3)},
          {"dz", noise(shape.columns, 4)}};
}

TEST(NormPrecision, forward) {
  for (const Shape& shape : kShapes) {
    const Inputs row = rows_with(shape);
    const auto columns = static_cast<std::int64_t>(shape.columns);
    for (const bool centred : {true, false}) {
      const op::Values values = centred
                                    ? evaluate(problem_of(rows_of<op::LayernormFwdParams>(1, columns, kEpsilon)), row)
                                    : evaluate(problem_of(rows_of<op::RmsnormFwdParams>(1, columns, kEpsilon)), row);
      const Numbers& x = row.at("x");
      const Statistics exact = statistics_of({x.begin(), x.end()}, centred);
      const double rsigma = exact.rsigma.rounded();
      ASSERT_NEAR(value_of(values, "rsigma")[0], rsigma, 1e-14 * rsigma) << shape.columns << " " << shape.mean;
      if (centred) {
        ASSERT_NEAR(value_of(values, "mu")[0], exact.mu.rounded(), 1e-15 * (std::fabs(shape.mean) + shape.sigma));
      }
      const Numbers y = value_of(values, "y");
      for (std::size_t j = 0; j < x.size(); ++j) {
        const double gamma = row.at("gamma")[j];
        const double beta = centred ? row.at("beta")[j] : 0;
        const Big expected = (Big(x[j]) - exact.mu) * exact.rsigma * Big(gamma) + Big(beta);
        const double terms =
            (std::fabs(x[j]) + std::fabs(exact.mu.rounded())) * rsigma * std::fabs(gamma) + std::fabs(beta);
        ASSERT_NEAR(y[j], expected.rounded(), 1e-14 * terms) << shape.columns << " " << shape.mean << " " << j;
      }
    }
  }
}

// Shows why there are shapes with large means: the one-pass formula would fail.
TEST(NormPrecision, one_pass_would_be_seen) {
  const Numbers x = noise(1000, 1, 0.5, 1e6);
  double sum = 0, squares = 0;
  for (const double each : x) {
    sum += each;
    squares += each * each;
  }
  const double mean = sum / 1000;
  const double wrong = 1 / std::sqrt(squares / 1000 - mean * mean + kEpsilon);
  const double exact = statistics_of({x.begin(), x.end()}, true).rsigma.rounded();
  EXPECT_GT(std::fabs(wrong - exact), 1e-7 * exact);
}

struct Gradients {
  Bigs dx, dgamma, dbeta;
};

/// The gradients of one row, by the formula, with the statistics given.
Gradients gradients_of(const Inputs& row, bool centred, const Statistics& saved) {
  const std::size_t n = row.at("x").size();
  Bigs xh, g, along;
  for (std::size_t j = 0; j < n; ++j) {
    xh.push_back((Big(row.at("x")[j]) - saved.mu) * saved.rsigma);
    g.push_back(Big(row.at("gamma")[j]) * Big(row.at("dz")[j]));
    along.push_back(xh[j] * g[j]);
  }
  const Big mean = centred ? mean_of(g) : Big();
  const Big mean_xh = mean_of(along);
  Gradients all;
  for (std::size_t j = 0; j < n; ++j) {
    all.dx.push_back(saved.rsigma * (g[j] - (mean_xh * xh[j] + mean)));
    all.dgamma.push_back(Big(row.at("dz")[j]) * xh[j]);
    all.dbeta.push_back(row.at("dz")[j]);
  }
  return all;
}

/// Sums of the magnitudes of the terms of dx.
Numbers terms_of(const Inputs& row, bool centred, double mu, double rsigma) {
  const std::size_t n = row.at("x").size();
  Numbers xh(n), g(n), terms(n);
  double mean = 0, mean_xh = 0;
  for (std::size_t j = 0; j < n; ++j) {
    xh[j] = std::fabs(row.at("x")[j] - mu) * rsigma;
    g[j] = std::fabs(row.at("gamma")[j] * row.at("dz")[j]);
    mean += centred ? g[j] / static_cast<double>(n) : 0;
    mean_xh += g[j] * xh[j] / static_cast<double>(n);
  }
  for (std::size_t j = 0; j < n; ++j) {
    terms[j] = rsigma * (g[j] + mean_xh * xh[j] + mean);
  }
  return terms;
}

op::Values backward(const Inputs& row, std::size_t columns, bool centred) {
  const auto hidden = static_cast<std::int64_t>(columns);
  return centred ? evaluate(problem_of(rows_of<op::LayernormBwdParams>(1, hidden, kEpsilon)), row)
                 : evaluate(problem_of(rows_of<op::RmsnormBwdParams>(1, hidden, kEpsilon)), row);
}

// The statistics are FP32 numbers here, as the op gets them.
TEST(NormPrecision, backward) {
  for (const Shape& shape : kShapes) {
    for (const bool centred : {true, false}) {
      Inputs row = rows_with(shape);
      const Numbers& x = row.at("x");
      const Statistics exact = statistics_of({x.begin(), x.end()}, centred);
      const auto mu = static_cast<double>(static_cast<float>(exact.mu.rounded()));
      const auto rsigma = static_cast<double>(static_cast<float>(exact.rsigma.rounded()));
      row["rsigma"] = {rsigma};
      if (centred) {
        row["mu"] = {mu};
      }
      const op::Values values = backward(row, shape.columns, centred);
      const Gradients expected = gradients_of(row, centred, {mu, rsigma});
      const Numbers terms = terms_of(row, centred, mu, rsigma);
      const Numbers dx = value_of(values, "dx"), dgamma = value_of(values, "dgamma");
      for (std::size_t j = 0; j < x.size(); ++j) {
        ASSERT_NEAR(dx[j], expected.dx[j].rounded(), 1e-14 * terms[j]) << shape.columns << " " << shape.mean;
        const double along = expected.dgamma[j].rounded();
        ASSERT_NEAR(dgamma[j], along, 1e-15 * std::fabs(along));
      }
    }
  }
}

// 3000 rows whose terms cancel to 2^-20 of one: sums over rows lose no digits.
TEST(NormPrecision, long_sums_over_rows) {
  constexpr std::size_t kRows = 3000;
  Inputs rows = {{"x", noise(kRows, 1)}, {"rsigma", noise(kRows, 2, 0.1, 3)}, {"dz", {}}, {"gamma", {1}}};
  Big sum;
  double terms = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    const double xh = rows["x"][i] * rows["rsigma"][i];
    rows["dz"].push_back(static_cast<double>(static_cast<float>((i % 2 == 0 ? 1 : -1) * (1 + 0x1p-20) / xh)));
    sum = sum + Big(rows["dz"][i]) * Big(rows["x"][i]) * Big(rows["rsigma"][i]);
    terms += std::fabs(rows["dz"][i] * xh);
  }
  const op::Values values = evaluate(problem_of(rows_of<op::RmsnormBwdParams>(kRows, 1, kEpsilon)), rows);
  ASSERT_LT(std::fabs(sum.rounded()), 1e-5 * terms);
  EXPECT_NEAR(value_of(values, "dgamma")[0], sum.rounded(), 3e-16 * terms);
}

/// sum_j dz_j y_j of the forward pass, statistics and all.
Big loss(const Inputs& row, const Bigs& x, const Bigs& gamma, bool centred) {
  const Statistics s = statistics_of(x, centred);
  Big sum;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const Big beta = centred ? Big(row.at("beta")[j]) : Big();
    sum = sum + Big(row.at("dz")[j]) * ((x[j] - s.mu) * s.rsigma * gamma[j] + beta);
  }
  return sum;
}

// Central differences with a step of 2^-300 leave 600 bits: only the reference's own rounding remains.
TEST(NormPrecision, backward_is_the_derivative) {
  const Big step = 0x1p-300;
  for (const Shape& shape : {Shape{7, 1, 0}, Shape{16, 0.01, 5}, Shape{5, 1, 1000}}) {
    for (const bool centred : {true, false}) {
      Inputs row = rows_with(shape);
      const Bigs x(row.at("x").begin(), row.at("x").end());
      const Bigs gamma(row.at("gamma").begin(), row.at("gamma").end());
      const Statistics exact = statistics_of(x, centred);
      row["rsigma"] = {exact.rsigma.rounded()};
      if (centred) {
        row["mu"] = {exact.mu.rounded()};
      }
      const op::Values values = backward(row, shape.columns, centred);
      const Numbers dx = value_of(values, "dx"), dgamma = value_of(values, "dgamma");
      const Numbers terms = terms_of(row, centred, 0, exact.rsigma.rounded());
      for (std::size_t j = 0; j < x.size(); ++j) {
        const auto slope = [&](Bigs above, Bigs below, Bigs gamma_above, Bigs gamma_below) {
          const Big rise = loss(row, above, gamma_above, centred) - loss(row, below, gamma_below, centred);
          return (rise / (Big(2) * step)).rounded();
        };
        Bigs above = x, below = x;
        above[j] = above[j] + step;
        below[j] = below[j] - step;
        EXPECT_NEAR(dx[j], slope(above, below, gamma, gamma), 1e-14 * terms[j]) << shape.columns << " " << j;
        above = below = gamma;
        above[j] = above[j] + step;
        below[j] = below[j] - step;
        const double along = slope(x, x, above, below);
        EXPECT_NEAR(dgamma[j], along, 1e-14 * std::fabs(row.at("dz")[j] * row.at("x")[j]) * exact.rsigma.rounded());
      }
    }
  }
}

}  // namespace
}  // namespace numcheck::reference

#endif
