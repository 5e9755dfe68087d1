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
  std::vector<std::size_t> left_open, inverses_left_open;
};

std::vector<std::size_t> starts(const op::OutputValues& output) {
  std::vector<std::size_t> found;
  for (const op::OutputValues::Range& range : output.open) {
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
  EXPECT_TRUE(made.left_open.empty());
  EXPECT_EQ(made.inverses_left_open, (std::vector<std::size_t>{3, 4})) << "1 / scale is subnormal";
}

TEST(MultiTensorScale, subnormal_amaxes_are_left_open_unless_epsilon_is_larger) {
  EXPECT_EQ(made_of({0x1p-127, 1}).left_open, (std::vector<std::size_t>{0}));
  op::MultiTensorScaleParams p;
  p.epsilon = 1;
  EXPECT_TRUE(made_of({0x1p-127, 1}, p).left_open.empty());
}

/// What may be else where a device delivers this for an amax of 2^-127, whose scale is FLT_MAX, and one of 2^-126.
std::vector<op::Settled> settled(const Numbers& scales, const Numbers& inverses) {
  const Numbers amaxes = {0x1p-127, 0x1p-126};
  const op::Params params = op::to_params(op::MultiTensorScaleParams{.tensors = 2});
  op::ReferenceRequest request;
  request.params = &params;
  request.inputs.push_back({.port = "amaxes", .data = amaxes.data(), .rows = 2, .cols = 1});
  const op::Values values = multi_tensor_scale_reference().values(request);
  const std::vector<op::Delivered> outputs = {{.port = "scales", .value = scales},
                                              {.port = "scale_invs", .value = inverses}};
  return multi_tensor_scale_reference().settle({&params, request.inputs, &values, outputs, &request.sample});
}

TEST(MultiTensorScale, flushing_leaves_one_other_value) {
  const double inverse = 1 / kLargest;
  EXPECT_TRUE(settled({kLargest, kLargest}, {inverse, inverse}).empty());
  const auto flushed = settled({1, kLargest}, {1, 0});
  ASSERT_EQ(flushed.size(), 3U);
  EXPECT_EQ(flushed[0].value, 1) << "the first scale";
  EXPECT_EQ(flushed[1].value, 1) << "and its inverse";
  EXPECT_EQ(flushed[2].value, 0) << "the inverse of FLT_MAX";
  EXPECT_EQ(flushed[2].element, 1U);
  EXPECT_TRUE(settled({kInfinity, 1}, {-inverse, 1}).empty())
      << "nothing else, and the second amax is no subnormal number";
}

}  // namespace
}  // namespace numcheck::reference
