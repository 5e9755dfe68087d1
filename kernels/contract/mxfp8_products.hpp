// What libraries' MXFP8 products need.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace numcheck::kernels {

/// Why that library computes none on a device of that compute capability.
[[nodiscard]] inline std::string mxfp8_product_obstacle(std::string_view library, int sm) {
  constexpr int kFirst = 100;
  return sm < kFirst
             ? fmt::format("MXFP8 products need sm_{} or later; this device is sm_{}", kFirst, sm)
             : fmt::format("{} reads MXFP8 scales in tiles of 128 x 4, in which te-numcheck does not store them yet",
                           library);
}

}  // namespace numcheck::kernels
