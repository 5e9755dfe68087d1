// Results of several numbers at a time against those of one at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <gtest/gtest.h>

#include "core/isa.hpp"
#include "op/reference.hpp"

namespace numcheck::reference::testing {

/// Restores the instruction set.
class EveryIsa : public ::testing::Test {
 protected:
  ~EveryIsa() override { core::force_isa(initial_); }

  /// Calls body(name) on every instruction set that this processor has.
  template <class Body>
  void for_each_isa(const Body& body) {
    for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
      if (core::force_isa(isa) == isa) {
        body(std::string(core::isa_name(isa)));
      }
    }
  }

 private:
  core::Isa initial_ = core::active_isa();
};

/// Elements [first, first + expected's) of `got`: values but for a few ulps of a double, errors but for one of FP32.
inline void expect_alike(const op::OutputValues& got, const op::OutputValues& expected, std::size_t first,
                         std::size_t count, const std::string& what) {
  const auto near = [](double x, double y, double relative) {
    return x == y || (std::isnan(x) && std::isnan(y)) ||
           std::fabs(x - y) <= relative * std::max(std::fabs(x), std::fabs(y));
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = first + i;
    ASSERT_TRUE(near(got.value[at], expected.value[i], 0x1p-49))
        << what << " element " << at << ": " << got.value[at] << " for " << expected.value[i];
    ASSERT_TRUE(near(static_cast<double>(got.magnitude[at]), static_cast<double>(expected.magnitude[i]), 0x1p-22))
        << what << " bound of element " << at << ": " << got.magnitude[at] << " for " << expected.magnitude[i];
    ASSERT_TRUE(near(static_cast<double>(got.deviation[at]), static_cast<double>(expected.deviation[i]), 0x1p-22))
        << what << " deviation of element " << at << ": " << got.deviation[at] << " for " << expected.deviation[i];
  }
}

}  // namespace numcheck::reference::testing
