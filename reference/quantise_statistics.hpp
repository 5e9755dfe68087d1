// What a cast lost, as numbers of the record: no gate.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "op/quantize.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// Of the codes of each layout, with x^ = code * scale_inv of its block; of nvfp4, scale_inv is that number times
/// global_amax / 2688:
///
///   underflow         share of the elements that are not 0 and whose code is
///   overflow          share of the elements with |x| > max scale_inv, max: largest number of the format
///   saturated codes   share of the codes that are +-max
///   mse, sqnr         mean of (x^ - x)^2, and sum x^2 over sum (x^ - x)^2 in dB, of finite elements
///   dead blocks       share of the blocks that are not all zeros, and whose codes are; not of the recipe tensor
///   smallest scale_inv, largest scale_inv      of the port that holds them; not of the recipe tensor
///
/// Source: TransformerEngine debug/features/utils/stats_computation.py for underflow, overflow and mse.
[[nodiscard]] std::vector<op::Finding> quantise_statistics(const op::FindingRequest& request);

/// The same of rows that are not all there at a time.
[[nodiscard]] std::unique_ptr<op::RowFindings> quantise_row_statistics(const op::Params& params, const op::Mode& mode);

}  // namespace numcheck::reference
