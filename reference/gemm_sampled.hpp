// Chosen outputs of a product that is too large to compute in full.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/matmul.hpp"

namespace numcheck::reference {

/// sum a b for the given flat output indices, in their order.
[[nodiscard]] std::vector<double> sampled_products(const ProductShape& shape, Factor<double> a, Factor<double> b,
                                                   std::span<const std::int64_t> indices);

struct SampledYardsticks {
  std::vector<double> magnitude;      ///< sum |a b|
  std::vector<double> second_moment;  ///< sum (a b)^2
};

/// The same for the yardsticks, in double.
[[nodiscard]] SampledYardsticks sampled_yardsticks(const ProductShape& shape, Factor<double> a, Factor<double> b,
                                                   std::span<const std::int64_t> indices);

}  // namespace numcheck::reference
