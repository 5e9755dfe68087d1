// What libraries' products of MXFP8 and NVFP4 operands need.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "op/gemm_scaling.hpp"

namespace numcheck::kernels {

/// Why that library computes none on a device of that compute capability. Precondition: op::has_scales_in_products.
[[nodiscard]] inline std::string block_product_obstacle(const op::GemmParams& params, std::string_view library,
                                                        int sm) {
  constexpr int kFirst = 100;
  const std::string_view name = op::has_global_scales(params) ? "NVFP4" : "MXFP8";
  return sm < kFirst
             ? fmt::format("{} products need sm_{} or later; this device is sm_{}", name, kFirst, sm)
             : fmt::format("{} reads {} scales in tiles of 128 x 4{}, in which te-numcheck does not store them yet",
                           library, name, op::has_global_scales(params) ? ", and two codes in a byte" : "");
}

}  // namespace numcheck::kernels
