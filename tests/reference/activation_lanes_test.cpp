// Elements that are taken several at a time have the numbers of elements taken one by one, on every instruction set.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "activation_problem.hpp"
#include "lanes_expected.hpp"

namespace numcheck::reference {
namespace {

class ActivationLanes : public testing::EveryIsa {};

/// Numbers of all sizes below 2^30, and many near zero.
std::vector<double> numbers(std::size_t count) {
  std::mt19937_64 engine(3);
  std::normal_distribution<double> normal(0, 3);
  std::uniform_real_distribution<double> exponent(-140, 29.5);
  std::vector<double> x;
  for (std::size_t i = 0; i < count; ++i) {
    const double wide = std::exp2(exponent(engine)) * (i % 4 < 2 ? 1 : -1);
    x.push_back(static_cast<double>(static_cast<float>(i % 2 == 0 ? normal(engine) : wide)));
  }
  for (const double special : {0.0, -0.0, 10.5, -10.5, 17.4, -17.4, 88.7, -88.7, 104.0, -104.5, 0x1p-7, -0x1p-7}) {
    x.push_back(special);
  }
  return x;
}

TEST_F(ActivationLanes, are_elements) {
  for_each_isa([](const std::string& isa) {
    for (const char* name : {"gelu", "silu", "qgelu"}) {
      std::vector<double> x = numbers(4001);
      const op::Values together = testing::forward({.kind = name}, x);
      x.push_back(std::nan(""));  // with it they are taken one by one
      const op::Values alone = testing::forward({.kind = name}, x);
      testing::expect_alike(together.outputs.at(0), alone.outputs.at(0), 0, x.size() - 1, isa + ", " + name);
    }
  });
}

}  // namespace
}  // namespace numcheck::reference
