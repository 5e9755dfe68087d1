// Scales of many tensors by hand: quotients, amaxes that have none, and what is left out.
#include "op/multi_tensor_scale.hpp"

#include <cstddef>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<float>::max();

struct Made {
  Numbers scales, inverses;
  std::vector<std::size_t> left_out, inverses_left_out;
};

std::vector<std::size_t> starts(const op::OutputValues& output) {
  std::vector<std::size_t> found;
  for (const op::OutputValues::Range& range : output.outside) {
    EXPECT_EQ(range.end, range.begin + 1);
    found.push_back(static_cast<std::size_t>(range.begin));
  }
  return found;
}

Made made_of(const Numbers& amaxes, op::MultiTensorScaleParams p = {}) {
  p.tensors = static_cast<std::int64_t>(amaxes.size());
  const op::Params params = op::to_params(p);
  op::ReferenceRequest request;
  request.params = &params;
  request.inputs.push_back({.port = "amaxes", .data = amaxes.data(), .rows = p.tensors, .cols = 1});
  const op::Values values = multi_tensor_scale_reference().values(request);
  const auto& scales = values.outputs[0];
  const auto& inverses = values.outputs[1];
  return {{scales.value.span().begin(), scales.value.span().end()},
          {inverses.value.span().begin(), inverses.value.span().end()},
          starts(scales),
          starts(inverses)};
}

TEST(MultiTensorScale, quotients_of_the_largest_number) {
  const Made made = made_of({448, 1, 3.5});
  EXPECT_EQ(made.scales, (Numbers{1, 448, 128}));
  EXPECT_EQ(made.inverses, (Numbers{1, static_cast<double>(1.0F / 448), 1.0 / 128}));
  op::MultiTensorScaleParams p;
  p.format = "fp8_e5m2";
  EXPECT_EQ(made_of({1}, p).scales, (Numbers{57344}));
  p.power_of_two = true;
  EXPECT_EQ(made_of({1, 1.75, 1.75 + 0x1p-22}, p).scales, (Numbers{32768, 32768, 16384}));
  p.epsilon = 7;
  EXPECT_EQ(made_of({0, 1}, p).scales, (Numbers{8192, 8192}));
}

TEST(MultiTensorScale, amaxes_without_a_quotient) {
  const Made made = made_of({0, kInfinity, std::numeric_limits<double>::quiet_NaN(), 0x1p-126, 0x1p-119});
  EXPECT_EQ(made.scales, (Numbers{1, 1, 1, kLargest, 0x1.cp127}));
  EXPECT_TRUE(made.left_out.empty());
  EXPECT_EQ(made.inverses_left_out, (std::vector<std::size_t>{3, 4})) << "1 / scale is subnormal";
}

TEST(MultiTensorScale, subnormal_amaxes_are_left_out_unless_epsilon_is_larger) {
  EXPECT_EQ(made_of({0x1p-127, 1}).left_out, (std::vector<std::size_t>{0}));
  op::MultiTensorScaleParams p;
  p.epsilon = 1;
  EXPECT_TRUE(made_of({0x1p-127, 1}, p).left_out.empty());
}

}  // namespace
}  // namespace numcheck::reference
