// Faults of a chosen size: where they are, and how large.
#include "kernels/sim/perturbation.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/unit/sim/device.hpp"

namespace {

using namespace numcheck;
using testing_sim::SimDevice;

constexpr std::int64_t kRows = 96, kColumns = 80;

op::GemmParams params(std::int64_t batch = 1) {
  op::GemmParams p;
  p.batch = batch;
  p.m = kRows;
  p.n = kColumns;
  p.k = 32;
  return p;
}

/// Relative changes of all outputs by a fault of a quarter.
std::vector<double> changes(const std::string& fault, std::int64_t batch = 1) {
  const auto backend = kernels::sim::make_backend(90);
  SimDevice device(*backend, params(batch), "fp32");
  const std::vector<double> clean = device.run(), faulty = device.run(fault + "=0.25");
  std::vector<double> relative;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    relative.push_back(faulty[i] / clean[i] - 1);
  }
  return relative;
}

void expect_only(const std::string& fault, const std::function<bool(std::int64_t, std::int64_t)>& inside) {
  const std::vector<double> relative = changes(fault);
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t column = 0; column < kColumns; ++column) {
      ASSERT_NEAR(relative[static_cast<std::size_t>(row * kColumns + column)], inside(row, column) ? 0.25 : 0, 1e-6)
          << fault << " at " << row << ", " << column;
    }
  }
}

TEST(Perturbation, changes_the_part_that_it_names) {
  expect_only("perturb_all", [](auto, auto) { return true; });
  expect_only("perturb_row", [](auto row, auto) { return row == kRows / 2; });
  expect_only("perturb_tile", [](auto row, auto column) { return row < 64 && column < 64; });
}

TEST(Perturbation, of_an_element_is_at_the_largest_of_the_middle_row) {
  const auto backend = kernels::sim::make_backend(90);
  SimDevice device(*backend, params(), "fp32");
  const std::vector<double> clean = device.run(), faulty = device.run("perturb_element=0.25");
  const auto middle = static_cast<std::size_t>(kRows / 2 * kColumns);
  double largest = 0;
  for (std::size_t i = middle; i < middle + kColumns; ++i) {
    largest = std::fmax(largest, std::fabs(clean[i]));
  }
  int changed = 0;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    changed += clean[i] != faulty[i] ? 1 : 0;
    if (clean[i] != faulty[i]) {
      EXPECT_EQ(std::fabs(clean[i]), largest);
      EXPECT_EQ(i / kColumns, middle / kColumns);
    }
  }
  EXPECT_EQ(changed, 1);
}

TEST(Perturbation, by_noise_has_the_rms_that_it_names_and_no_mean) {
  double sum = 0, squares = 0;
  const std::vector<double> relative = changes("perturb_noise");
  for (const double x : relative) {
    sum += x;
    squares += x * x;
  }
  const auto n = static_cast<double>(relative.size());
  EXPECT_NEAR(sum / n, 0, 5 * 0.25 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n), 0.25, 0.25 * 0.03);
}

TEST(Perturbation, of_a_batch_is_in_one_of_its_matrices) {
  const std::vector<double> relative = changes("perturb_row", 3);
  for (std::size_t i = 0; i < relative.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / kColumns;
    ASSERT_NEAR(relative[i], row == 3 * kRows / 2 ? 0.25 : 0, 1e-6) << i;
  }
}

TEST(Perturbation, needs_a_size_and_floating_point_outputs) {
  for (const char* text : {"perturb_all", "perturb_all=", "perturb_all=nan", "perturb_all=0", "perturb_all=1e-3 "}) {
    EXPECT_THROW(static_cast<void>(kernels::sim::perturbation_named(text, 1)), core::UsageError) << text;
  }
  EXPECT_FALSE(kernels::sim::perturbation_named("perturbed=1", 1).has_value());
  op::Port map;
  map.role = op::Role::output;
  map.dtype = core::Dtype::uint8;
  map.rows = map.cols = 1;
  EXPECT_NE(kernels::sim::perturbation_obstacle("perturb_all=1", {&map, 1}), "");
}

}  // namespace
