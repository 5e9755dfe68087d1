// What the four row normalisations share: parameters, checks, ports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// gamma' is what a row is multiplied by: gamma, or gamma + 1 where gamma is zero-centred. TransformerEngine adds the
/// one in FP32; cuDNN can add it in the weight's format, which rounds gamma' to that format.
/// Source: TransformerEngine common/normalization (ln_fwd_kernels.cuh; NVTE_ZERO_CENTERED_GAMMA_IN_WTYPE).
struct NormParams {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  double epsilon = 1e-5;
  bool zero_centered_gamma = false;
  std::string gamma_add = "fp32";  ///< fp32 | weight

  template <class V>
  void describe(V& v) {
    constexpr double kMaxRows = 1 << 24;
    constexpr double kMaxHidden = 1 << 20;
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxRows, .required = true, .doc = "rows of x"});
    v.integer("hidden", "h", hidden, {.minimum = 1, .maximum = kMaxHidden, .required = true, .doc = "columns of x"});
    v.number("epsilon", "eps", epsilon,
             {.minimum = 0, .maximum = 1, .doc = "added to the mean square or variance, inside the root"});
    v.boolean("zero_centered_gamma", "zc", zero_centered_gamma, "gamma is stored minus one");
    v.choice("gamma_add", "ga", gamma_add, {"fp32", "weight"},
             "arithmetic of gamma + 1 (zero-centred gamma): FP32, or rounded to the weight's format");
  }
};

/// The mistake of a gamma_add without a zero-centred gamma, or nothing.
[[nodiscard]] std::vector<std::string> check_gamma_add(std::string_view op, const NormParams& params);

/// [rows, hidden] in that format.
[[nodiscard]] Port norm_matrix(std::string_view name, Role role, core::Dtype dtype, const NormParams& params,
                               std::string_view doc);

/// [1, hidden] in that format: weights and their gradients.
[[nodiscard]] Port norm_weight(std::string_view name, Role role, core::Dtype dtype, const NormParams& params,
                               std::string_view doc);

/// [rows, 1] in FP32: a statistic of each row. As an input of a backward op it is derived from x.
[[nodiscard]] Port norm_statistic(std::string_view name, Role role, const NormParams& params, std::string_view doc);

/// Operations of one run, given those per element of x.
[[nodiscard]] double norm_flops(const NormParams& params, double per_element);

}  // namespace numcheck::op
