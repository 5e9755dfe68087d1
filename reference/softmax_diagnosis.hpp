// What may explain a softmax that failed a gate.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Tries roundings that an implementation may do between exponentials and quotients, in rows of `columns` elements of
/// output `port`. The best is a finding if it explains 90 % of the error.
[[nodiscard]] std::vector<op::Finding> diagnose_softmax(const op::FindingRequest& request, std::string_view port,
                                                        std::size_t columns);

}  // namespace numcheck::reference
