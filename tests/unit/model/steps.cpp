#include "tests/unit/model/steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/codec.hpp"
#include "model/fused_step.hpp"

namespace numcheck::testing_model {
namespace {

using core::Dtype;
using model::Schedule;

std::uint32_t word_of(double value, Dtype dtype) {
  return static_cast<std::uint32_t>(core::encode(value, dtype));
}

/// One segment of products, step by step.
float chain_by_steps(const Schedule& s, Dtype da, Dtype db, const std::vector<float>& a, const std::vector<float>& b,
                     std::int64_t begin, std::int64_t end) {
  if (s.chain == Schedule::Chain::fma) {
    float sum = 0;
    for (std::int64_t t = begin; t < end; ++t) {
      sum = std::fma(a[static_cast<std::size_t>(t)], b[static_cast<std::size_t>(t)], sum);
    }
    return sum;
  }
  std::uint32_t c = 0;
  for (std::int64_t t = begin; t < end; t += s.step.L) {
    std::vector<model::Operand> left;
    std::vector<model::Operand> right;
    for (std::int64_t u = t; u < std::min<std::int64_t>(t + s.step.L, end); ++u) {
      left.push_back(model::decode_operand(word_of(static_cast<double>(a[static_cast<std::size_t>(u)]), da), da));
      right.push_back(model::decode_operand(word_of(static_cast<double>(b[static_cast<std::size_t>(u)]), db), db));
    }
    c = model::fused_step(s.step, left, da, right, db, c);
  }
  return static_cast<float>(core::decode(c, model::accumulator_dtype(s.step.rho)));
}

}  // namespace

float element_by_steps(const Schedule& s, Dtype da, Dtype db, const std::vector<float>& a,
                       const std::vector<float>& b) {
  float total = 0;
  bool first_slice = true;
  for (const model::KRange& slice : model::slices_of(s, static_cast<std::int64_t>(a.size()))) {
    float sum = 0;
    const std::int64_t length = s.promotion_interval == 0 ? slice.end - slice.begin : s.promotion_interval;
    for (std::int64_t begin = slice.begin; begin < slice.end; begin += length) {
      const float part = chain_by_steps(s, da, db, a, b, begin, std::min(begin + length, slice.end));
      sum = begin == slice.begin ? part : sum + part;
    }
    total = first_slice ? sum : total + sum;
    first_slice = false;
  }
  return total;
}

}  // namespace numcheck::testing_model
