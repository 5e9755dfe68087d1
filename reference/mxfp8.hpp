// From an op's results to its MXFP8 output: values and yardsticks of codes and scales. The rule is in op/mxfp8.hpp.
//
// The expected value of a code is code 2^(e - 127), not the result that it stands for: where the result is known well
// enough to determine the code, B is zero, so that every other code is wrong. (Half the spacing of the codes would also
// do as the bound, except for results in the middle between two codes: there a 16-bit number that was not rounded first
// is as close as the right one.) Where the result's own error crosses a boundary, of its rounding, of its code or of
// the block's scale, B is the distance to the farthest code that a correct device may store.
#pragma once

#include <cstdint>
#include <string_view>

#include "op/mxfp8.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

struct Mxfp8Output {
  op::Mxfp8Names names;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  core::Dtype codes = core::Dtype::fp8_e4m3;
  core::Dtype first = core::Dtype::fp32;  ///< format that results are rounded to first
  std::string_view layout = "rowwise";
};

/// The outputs of the layout. `results`: the op's, with bounds in `magnitude`; if these are empty, only values are
/// returned, and those of the codes are the results, as from exact arithmetic. A result without a bound leaves its
/// block undetermined, except for NaNs in it.
[[nodiscard]] op::Values mxfp8_outputs(op::OutputValues results, const Mxfp8Output& output);

}  // namespace numcheck::reference
