// Elements of a product that are NaN, infinite or finite where they should be something else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "op/reference.hpp"
#include "reference/gemm_operands.hpp"

namespace numcheck::reference {

struct BrokenElement {
  std::int64_t at = 0;  ///< flat index
  double got = 0;
};

/// Those of the first output, in ascending order. An infinity of a number that the format does not hold is right, and a NaN may
/// be: sums on the way to it overflow in either direction. So does x (1 + tanh(...)) in FP32 on the way to gelu above half of its
/// largest number.
[[nodiscard]] std::vector<BrokenElement> broken_elements(const op::FindingRequest& request, Epilogue epilogue);

/// The share of them that `explains` accepts, of up to 4096 that are spread over all; 0 if there are none.
[[nodiscard]] double explained_share(const std::vector<BrokenElement>& broken,
                                     const std::function<bool(const BrokenElement&)>& explains);

}  // namespace numcheck::reference
