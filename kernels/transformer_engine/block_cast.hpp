// nvte_quantize_v2 and nvte_dequantize with a scale per block.
#pragma once

#include <string>

#include "kernels/transformer_engine/launch.hpp"
#include "op/quantize.hpp"

namespace numcheck::kernels::transformer_engine {

/// Why the library does not compute the case, whose recipe is not tensor, in a sentence; empty if it does.
[[nodiscard]] std::string block_quantize_obstacle(const Context& context, const Call& call,
                                                  const op::QuantizeParams& p);
[[nodiscard]] std::string block_dequantize_obstacle(const Context& context, const Call& call,
                                                    const op::DequantizeParams& p);

/// Precondition: no obstacle.
[[nodiscard]] Algorithm block_quantize_algorithm(const Context& context, const Call& call, const op::QuantizeParams& p);
[[nodiscard]] Algorithm block_dequantize_algorithm(const Context& context, const op::DequantizeParams& p);

}  // namespace numcheck::kernels::transformer_engine
