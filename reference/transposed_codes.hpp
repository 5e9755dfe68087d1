// FP8 codes that an op leaves transposed as well.
#pragma once

#include <string_view>
#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

inline constexpr op::OwnGate kTransposedCodes{
    "transposed codes", "how many codes differ, bit for bit, from those of which they are the transpose"};

/// Codes of `port`, rows x cols, beside those of `transposed`, which have the same scale: their numbers are equal where the codes are.
/// NaN is NaN whatever its sign; nothing if either was not delivered.
[[nodiscard]] std::vector<op::Finding> judge_transpose(const op::FindingRequest& request, std::string_view port,
                                                       std::string_view transposed, std::size_t cols);

}  // namespace numcheck::reference
