// MXFP8 outputs of TransformerEngine's functions: tensors of scaling mode 1.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/transformer_engine/launch.hpp"
#include "op/mxfp8.hpp"

namespace numcheck::kernels::transformer_engine {

/// Why the library does not write the case's MXFP8 output; empty if it does, or if the case has none.
/// Source: TransformerEngine common/cast/dispatch/gated.cuh and common/cast/mxfp8/quantize_mxfp8.cuh.
[[nodiscard]] std::string mxfp8_obstacle(const Context& context, const Call& call);

/// Bytes of the scales, padded as the library expects them: what Operands::extra must hold.
[[nodiscard]] std::size_t mxfp8_scratch(const Call& call);

/// The output of one launch. The library expects scales padded to multiples of 128 and 4 rows and columns, so they are
/// in scratch memory until they are copied to their ports.
class Mxfp8Output {
 public:
  Mxfp8Output(Operands& operands, const op::Mxfp8Names& names);

  [[nodiscard]] Handle handle() const noexcept { return handle_; }
  /// Enqueues the copies, after the call that wrote the scales.
  void copy_scales(Stream stream) const;

 private:
  struct Scales {
    std::byte* port = nullptr;
    std::byte* padded = nullptr;
    std::size_t cols = 0;
    std::size_t rows = 0;
    std::size_t pitch = 0;
  };

  Handle handle_ = nullptr;
  std::vector<Scales> scales_;
};

}  // namespace numcheck::kernels::transformer_engine
