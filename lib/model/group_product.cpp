#include "model/group_product.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"

namespace numcheck::model {
namespace {

constexpr int kSmallestExponent = -6;  // of E4M3
constexpr int kMostGroups = 8;         // of a step

/// A scale as the instruction takes it.
struct Scale {
  double significand = 0;
  int exponent = 0;
};

Scale scale_of(float stored) {
  const double size = std::fabs(static_cast<double>(stored));
  if (!(size > 0)) {
    return {size, kSmallestExponent};  // 0 or NaN
  }
  const int exponent = std::max(std::ilogb(size), kSmallestExponent);
  return {std::ldexp(size, -exponent), exponent};
}

/// A term of a step: value 2^exponent.
struct Term {
  double value = 0;
  int exponent = 0;
};

/// Toward zero. All finite sums are far from FP32's ends.
float truncated_to_fp32(double sum) {
  const auto nearest = static_cast<float>(sum);
  return std::fabs(static_cast<double>(nearest)) > std::fabs(sum) ? std::nextafter(nearest, 0.0F) : nearest;
}

float add_step(const StepModel& step, std::span<const Term> groups, float c) {
  const Term addend = {static_cast<double>(c), c == 0 ? step.e_zero : std::max(std::ilogb(c), -126)};
  int most = addend.exponent;
  for (const Term& group : groups) {
    most = std::max(most, group.exponent);
  }
  const int unit = most - step.F;
  double sum = std::trunc(std::ldexp(addend.value, -unit));
  for (const Term& group : groups) {
    sum += std::trunc(std::ldexp(group.value, group.exponent - unit));  // below 2^50 together
  }
  return sum == 0 ? 0 : truncated_to_fp32(std::ldexp(sum, unit));
}

/// One row of A and one column of B, k numbers each, and their scales.
class Element {
 public:
  Element(const StepModel& step, const ProductOperands& operands) : step_(step), operands_(operands) {}

  [[nodiscard]] float sum(const float* a, const float* b, const float* a_scales, const float* b_scales) const {
    float c = 0;
    for (std::int64_t begin = 0; begin < operands_.k; begin += step_.L) {
      const std::int64_t end = std::min<std::int64_t>(begin + step_.L, operands_.k);
      Term groups[kMostGroups];
      std::size_t count = 0;
      for (std::int64_t at = begin; at < end; at += step_.group) {
        const std::int64_t part = at / operands_.scales.products;
        groups[count++] = group(a, b, at, std::min<std::int64_t>(at + step_.group, end), scale_of(a_scales[part]),
                                scale_of(b_scales[part]));
      }
      c = add_step(step_, std::span(groups, count), c);
    }
    return c;
  }

 private:
  [[nodiscard]] Term group(const float* a, const float* b, std::int64_t begin, std::int64_t end, const Scale& of_a,
                           const Scale& of_b) const {
    double sum = 0, magnitude = 0;  // exact
    for (std::int64_t t = begin; t < end; ++t) {
      const double product = static_cast<double>(a[t]) * static_cast<double>(b[t]);
      sum += product;
      magnitude += std::fabs(product);
    }
    const double value = sum * of_a.significand * of_b.significand;
    const bool is_zero = magnitude == 0 || of_a.significand == 0 || of_b.significand == 0;
    return {value, is_zero ? step_.e_zero : of_a.exponent + of_b.exponent};
  }

  const StepModel& step_;
  const ProductOperands& operands_;
};

core::Buffer<float> columns_of(const ProductOperands& operands) {
  core::Buffer<float> columns(operands.b.size());
  for (std::int64_t t = 0; t < operands.k; ++t) {
    for (std::int64_t j = 0; j < operands.n; ++j) {
      columns[static_cast<std::size_t>(j * operands.k + t)] = operands.b[static_cast<std::size_t>(t * operands.n + j)];
    }
  }
  return columns;
}

}  // namespace

void simulate_groups(const Schedule& schedule, const ProductOperands& operands, std::span<float> acc) {
  const StepModel& step = schedule.step;
  const LineScales& scales = operands.scales;
  if (step.group < 1 || step.L > kMostGroups * step.group || scales.products % step.group != 0 ||
      scales.products == 0 || schedule.split_k != 1) {
    throw core::InternalError("simulate_groups: scales do not match the step");
  }
  const core::Buffer<float> columns = columns_of(operands);
  const Element element(step, operands);
  core::parallel_for(static_cast<std::size_t>(operands.m), [&](std::size_t row) {
    const auto i = static_cast<std::int64_t>(row);
    for (std::int64_t j = 0; j < operands.n; ++j) {
      acc[static_cast<std::size_t>(i * operands.n + j)] =
          element.sum(operands.a.data() + i * operands.k, columns.data() + j * operands.k,
                      scales.a.data() + i * scales.parts, scales.b.data() + j * scales.parts);
    }
  });
}

}  // namespace numcheck::model
