// TransformerEngine's casts to NVFP4 and back: nvte_quantize_v2 and nvte_dequantize.
#pragma once

#include <string>

#include "kernels/transformer_engine/launch.hpp"
#include "op/quantize.hpp"

namespace numcheck::kernels::transformer_engine {

/// Why the library or the device does not run the case; empty if they do. Nearest codes need instructions that devices have from
/// compute capability 10.0 on; random ones, from 2.20 on, and dequantisation do not.
[[nodiscard]] std::string nvfp4_obstacle(const Context& context, const op::QuantizeParams& p, const Call& call);
[[nodiscard]] std::string nvfp4_obstacle(const Context& context, const op::DequantizeParams& p);

[[nodiscard]] Algorithm nvfp4_algorithm(const Context& context, const op::QuantizeParams& p);
[[nodiscard]] Algorithm nvfp4_algorithm(const Context& context, const op::DequantizeParams& p);

}  // namespace numcheck::kernels::transformer_engine
