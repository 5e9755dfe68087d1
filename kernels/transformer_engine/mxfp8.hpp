// MXFP8 tensors of TransformerEngine's functions: those of scaling mode 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/transformer_engine/launch.hpp"
#include "op/mxfp8.hpp"

namespace numcheck::kernels::transformer_engine {

/// Why the library does not write the case's MXFP8 output; empty if it does, or if the case has none.
/// Source: TransformerEngine common/cast/dispatch/gated.cuh and common/cast/mxfp8/quantize_mxfp8.cuh.
[[nodiscard]] std::string mxfp8_obstacle(const Context& context, const Call& call);

/// The same of a case that has one; `does`: "writes MXFP8 outputs".
[[nodiscard]] std::string mxfp8_device_obstacle(const Context& context, std::string_view does);

/// Bytes of the scales of MXFP8 codes [rows, cols], padded as the library expects them.
[[nodiscard]] std::size_t padded_scale_bytes(std::int64_t rows, std::int64_t cols, bool along_rows);

/// The same of the case's output: what Operands::extra must hold.
[[nodiscard]] std::size_t mxfp8_scratch(const Call& call, const op::Mxfp8Names& names);

/// The output of one launch, or the input of one. The library expects scales padded to multiples of 128 and 4 rows and columns,
/// so they are in scratch memory until they are copied to their ports.
class Mxfp8Tensor {
 public:
  Mxfp8Tensor(Operands& operands, const op::Mxfp8Names& names);

  [[nodiscard]] Handle handle() const noexcept { return handle_; }
  /// Enqueues the copies, after the call that wrote the scales.
  void copy_scales(Stream stream) const;
  /// Enqueues the opposite copies, before a call that reads the scales. The padding stays as it is.
  void pad_scales(Stream stream) const;

 private:
  struct Scales {
    std::byte* port = nullptr;
    std::byte* padded = nullptr;
    std::size_t cols = 0;
    std::size_t rows = 0;
    std::size_t pitch = 0;   ///< of the padded ones
    std::size_t stride = 0;  ///< of those of the port
  };

  Handle handle_ = nullptr;
  std::vector<Scales> scales_;
};

/// The output of a function that casts its results to `format`: MXFP8, per tensor, or not at all.
class CastOutput {
 public:
  CastOutput(Operands& operands, std::string_view format, const op::Mxfp8Names& names, Extents extents);

  [[nodiscard]] Handle handle() const noexcept { return blocks_.has_value() ? blocks_->handle() : tensor_->handle(); }
  /// The tensor of an output without block scales; null otherwise.
  [[nodiscard]] Tensor* tensor() const noexcept { return tensor_; }
  /// What must follow the call.
  void finish(Stream stream) const;

 private:
  std::optional<Mxfp8Tensor> blocks_;
  Tensor* tensor_ = nullptr;
};

}  // namespace numcheck::kernels::transformer_engine
