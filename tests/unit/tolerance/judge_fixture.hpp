// Statistics and models with which tests of gates start.
#pragma once

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tolerance/judge.hpp"

namespace numcheck::tolerance {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Statistics of a large clean BF16 output.
inline metric::Statistics clean() {
  metric::Statistics s;
  s.elements = s.finite = 1'000'000;
  s.max_over_bound = 0.5;
  s.z_rms = 1;
  s.z_q999 = 3;
  s.z_max = 5;
  s.slope_se = 1e-9;
  s.slope_predicted_se = 1e-9;
  s.spread_ulps = 100;
  s.flips[2] = {.width = 1, .count = 1'000'000, .found = 20, .allowed = 30};
  s.max_over_half_ulp = 0.9;
  return s;
}

inline model::ErrorModel bf16_model() {
  model::ErrorModel m;
  m.output = core::Dtype::bf16;
  m.source = "gemm/bf16";
  return m;
}

inline model::ErrorModel fp32_model() {
  model::ErrorModel m = bf16_model();
  m.output = core::Dtype::fp32;
  return m;
}

inline const Criterion* find(const std::vector<Criterion>& criteria, std::string_view name) {
  const auto found = std::ranges::find(criteria, name, &Criterion::name);
  return found == criteria.end() ? nullptr : &*found;
}

inline bool holds(std::string_view gate, const metric::Statistics& s, const model::ErrorModel& m = bf16_model(),
                  const RunFacts& facts = {}, const plan::ToleranceSpec& extra = {}) {
  const std::vector<Criterion> criteria = judge(s, m, facts, extra);
  const Criterion* found = find(criteria, gate);
  EXPECT_NE(found, nullptr) << gate;
  return found != nullptr && found->ok;
}

inline bool judged(std::string_view gate, const metric::Statistics& s, const model::ErrorModel& m = bf16_model(),
                   const RunFacts& facts = {}) {
  return find(judge(s, m, facts, {}), gate) != nullptr;
}

}  // namespace numcheck::tolerance
