// The faults of `gemm` and the cases in which they must be caught.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/case.hpp"

namespace numcheck::detect {

struct FaultCase {
  std::string fault;
  plan::Case c;
  int sm = 90;
  std::string gate;      ///< first failing criterion
  std::string also;      ///< another that must fail; may be empty
  bool classify = true;  ///< with the classification product; without it statistics alone must do
};

/// Every fault of the simulated devices and of the harness at least once.
[[nodiscard]] std::vector<FaultCase> fault_cases();

}  // namespace numcheck::detect
