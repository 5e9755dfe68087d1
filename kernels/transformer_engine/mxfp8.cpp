#include "kernels/transformer_engine/mxfp8.hpp"

#include <algorithm>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

struct Extent {
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  [[nodiscard]] std::size_t elements() const noexcept { return static_cast<std::size_t>(rows * cols); }
};

std::int64_t padded_to(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/// Shape in which the library expects the scales of these codes.
/// Source: TransformerEngine common/transformer_engine.cpp, CheckScaleTensorShape.
Extent padded_scales(const op::Port& codes) {
  constexpr std::int64_t kAlongLines = 128;
  constexpr std::int64_t kAlongBlocks = 4;
  const bool rowwise = codes.block_rows == 1;
  const op::Mxfp8Grid grid =
      rowwise ? op::rowwise_grid(codes.rows, codes.cols) : op::columnwise_grid(codes.rows, codes.cols);
  return {padded_to(grid.rows, rowwise ? kAlongLines : kAlongBlocks),
          padded_to(grid.cols, rowwise ? kAlongBlocks : kAlongLines)};
}

}  // namespace

std::string mxfp8_obstacle(const Context& context, const Call& call) {
  constexpr int kFirst = 100;
  const auto codes = std::ranges::find_if(call.ports, [](const op::Port& port) { return !port.scaled_by.empty(); });
  if (codes == call.ports.end()) {
    return {};
  }
  if (context.info.sm < kFirst) {
    return fmt::format(
        "TransformerEngine writes MXFP8 outputs only on devices of compute capability 10.0 and later, and this one has "
        "{}.{}",
        context.info.sm / 10, context.info.sm % 10);
  }
  return {};
}

std::size_t mxfp8_scratch(const Call& call) {
  std::size_t bytes = 0;
  for (const op::Port& port : call.ports) {
    bytes += port.scaled_by.empty() ? 0 : aligned(padded_scales(port).elements());
  }
  return bytes;
}

Mxfp8Output::Mxfp8Output(Operands& operands, const op::Mxfp8Names& names) {
  Tensor& tensor = operands.none(kMxfp8);
  std::byte* memory = operands.extra();
  const auto add = [&](std::string_view name, TensorParam data, TensorParam scale_inv) {
    if (!operands.has(name)) {
      return;
    }
    const op::Port& codes = operands.port(name);
    const op::Port& scales = operands.port(codes.scaled_by);
    const Extent padded = padded_scales(codes);
    tensor.set(data, operands.data(name), data_type(codes.dtype), {codes.rows, codes.cols});
    tensor.set(scale_inv, memory, kFloat8E8m0, {padded.rows, padded.cols});
    scales_.push_back({operands.data(codes.scaled_by), memory, static_cast<std::size_t>(scales.cols),
                       static_cast<std::size_t>(scales.rows), static_cast<std::size_t>(padded.cols)});
    memory += aligned(padded.elements());
  };
  add(names.rowwise, kRowwiseData, kRowwiseScaleInv);
  add(names.columnwise, kColumnwiseData, kColumnwiseScaleInv);
  handle_ = tensor.handle();
}

void Mxfp8Output::copy_scales(Stream stream) const {
  for (const Scales& each : scales_) {
    cuda_support::check(cudaMemcpy2DAsync(each.port, each.cols, each.padded, each.pitch, each.cols, each.rows,
                                          cudaMemcpyDeviceToDevice, stream),
                        "cudaMemcpy2DAsync");
  }
}

}  // namespace numcheck::kernels::transformer_engine
