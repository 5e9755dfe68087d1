// The distribution "patterns": every number of a format, in the order of its bits.
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "data/distribution.hpp"

namespace numcheck::test {
namespace {

using core::Dtype;

std::vector<double> patterns(const std::string& format, std::int64_t stride, std::size_t count) {
  std::vector<double> values(count);
  data::generate({"patterns", {format, stride}}, {1, 2, 3}, 0, values);
  return values;
}

/// Bit patterns are numbers of the format, which rounding to it does not change.
TEST(Patterns, are_all_numbers_of_the_format) {
  for (const Dtype format : {Dtype::bf16, Dtype::fp16}) {
    const std::string name(core::dtype_info(format).name);
    const std::vector<double> values = patterns(name, 1, 65536);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isnan(values[i])) {
        ASSERT_EQ(core::encode(values[i], format), i) << name;
      }
    }
  }
}

TEST(Patterns, a_stride_sweeps_fp32) {
  const std::vector<double> values = patterns("fp32", 257, 100000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(values[i])), 257 * i);
  }
}

}  // namespace
}  // namespace numcheck::test
