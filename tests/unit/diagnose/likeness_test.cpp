// Which distribution numbers are taken for, of numbers that were drawn from one.
#include "diagnose/likeness.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::diagnose {
namespace {

constexpr std::size_t kCols = 64;

std::string name_of(std::string_view distribution) {
  std::vector<double> numbers(64 * kCols);
  data::generate(data::make_distribution(distribution), {7, 8, 9}, 0, numbers, {.cols = kCols, .rows = 64});
  return likeness(numbers, kCols).name;
}

TEST(Likeness, is_that_which_numbers_were_drawn_from) {
  EXPECT_EQ(name_of("normal"), "normal");
  EXPECT_EQ(name_of("constant"), "constant");
  EXPECT_EQ(name_of("signs"), "signs");
  EXPECT_EQ(name_of("positive"), "uniform");
  EXPECT_EQ(name_of("large_mean"), "uniform") << "all of one sign";
  EXPECT_EQ(name_of("activations"), "activations");
  EXPECT_EQ(name_of("outliers"), "activations");
}

TEST(Likeness, columns_of_one_sign_are_no_chance) {
  std::vector<double> numbers(10 * kCols);  // what "structured" draws where its period divides a row
  data::generate(data::make_distribution("normal"), {7, 8, 9}, 0, numbers, {.cols = kCols, .rows = 10});
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = (i % 2 == 0 ? 1 : -1) * (0.75 + 0.05 * std::tanh(numbers[i]));
    numbers[i] *= i % kCols % 4 < 2 ? 1 : -1;
  }
  EXPECT_EQ(likeness(numbers, kCols).name, "structured");
  std::vector<double> drawn(10 * kCols);  // a row of one sign, and the next of the other
  data::generate(data::make_distribution("structured"), {7, 8, 9}, 0, drawn, {.cols = kCols, .rows = 10});
  EXPECT_EQ(likeness(drawn, kCols).name, "structured");
  data::generate(data::make_distribution("normal"), {7, 8, 9}, 0, drawn, {.cols = kCols, .rows = 10});
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    drawn[i] += 0.8 * (i % kCols % 3 == 0 ? 1 : -1);
  }
  EXPECT_EQ(likeness(drawn, kCols).name, "activations") << "a mean for each column";
}

TEST(Likeness, a_mean_that_is_no_chance_counts) {
  std::vector<double> numbers(64 * kCols);
  data::generate(data::make_distribution("normal"), {7, 8, 9}, 0, numbers, {.cols = kCols, .rows = 64});
  for (double& x : numbers) {
    x += 0.5;
  }
  EXPECT_EQ(likeness(numbers, kCols).name, "large_mean");
}

TEST(Likeness, nothing_breaks_it) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(likeness({}, 8).name, "normal");
  EXPECT_EQ(likeness({}, 0).name, "normal");
  EXPECT_EQ(likeness(std::vector<double>{nan, nan, nan, nan}, 2).name, "normal");
  EXPECT_EQ(likeness(std::vector<double>{0, 0, 0, 0}, 2).name, "normal");
  EXPECT_EQ(likeness(std::vector<double>{1}, 5).name, "normal") << "fewer numbers than a row";
}

}  // namespace
}  // namespace numcheck::diagnose
