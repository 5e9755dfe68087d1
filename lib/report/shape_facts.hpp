// The parameters of cases as facts that borders between precision classes can be described with.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/class_borders.hpp"

namespace numcheck::report {

/// The parameters that differ between these cases of one op: m, n and k first, then gemm's leading dimensions ("lda",
/// "ldb", "ldd", in elements) where rows are padded, then all others. One value per case.
[[nodiscard]] std::vector<Fact> shape_facts(std::string_view op, std::span<const nlohmann::json* const> params);

/// Multiplications of a product, m * n * k; 0 for ops without these. In floating point, because it may exceed 64 bits.
[[nodiscard]] double product_size(const nlohmann::json& params);

}  // namespace numcheck::report
