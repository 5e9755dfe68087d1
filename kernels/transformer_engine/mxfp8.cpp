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

/// Shape in which the library expects the scales of codes [rows, cols].
/// Source: TransformerEngine common/transformer_engine.cpp, CheckScaleTensorShape.
Extent padded_scales(std::int64_t rows, std::int64_t cols, bool along_rows) {
  constexpr std::int64_t kAlongLines = 128;
  constexpr std::int64_t kAlongBlocks = 4;
  const op::Mxfp8Grid grid = along_rows ? op::rowwise_grid(rows, cols) : op::columnwise_grid(rows, cols);
  return {padded_to(grid.rows, along_rows ? kAlongLines : kAlongBlocks),
          padded_to(grid.cols, along_rows ? kAlongBlocks : kAlongLines)};
}

}  // namespace

std::string mxfp8_device_obstacle(const Context& context, std::string_view does) {
  constexpr int kFirst = 100;
  if (context.info.sm >= kFirst) {
    return {};
  }
  return fmt::format(
      "TransformerEngine {} only on devices of compute capability 10.0 and later, and this one has {}.{}", does,
      context.info.sm / 10, context.info.sm % 10);
}

std::string mxfp8_obstacle(const Context& context, const Call& call) {
  const auto codes = std::ranges::find_if(call.ports, [](const op::Port& port) { return !port.scaled_by.empty(); });
  return codes == call.ports.end() ? std::string() : mxfp8_device_obstacle(context, "writes MXFP8 outputs");
}

std::size_t padded_scale_bytes(std::int64_t rows, std::int64_t cols, bool along_rows) {
  return aligned(padded_scales(rows, cols, along_rows).elements());
}

std::size_t mxfp8_scratch(const Call& call, const op::Mxfp8Names& names) {
  std::size_t bytes = 0;
  for (const op::Port& port : call.ports) {
    if (port.name == names.rowwise || port.name == names.columnwise) {
      bytes += padded_scale_bytes(port.rows, port.cols, port.name == names.rowwise);
    }
  }
  return bytes;
}

Mxfp8Tensor::Mxfp8Tensor(Operands& operands, const op::Mxfp8Names& names) {
  Tensor& tensor = operands.none(kMxfp8);
  std::byte* memory = operands.extra();
  const auto add = [&](std::string_view name, std::string_view scale_name, TensorParam data, TensorParam scale_inv) {
    if (!operands.has(name)) {
      return;
    }
    const op::Port& codes = operands.port(name);
    const op::Port& scales = operands.port(scale_name);
    const Extent padded = padded_scales(codes.rows, codes.cols, name == names.rowwise);
    tensor.set(data, operands.data(name), data_type(codes.dtype), {codes.rows, codes.cols});
    tensor.set(scale_inv, memory, kFloat8E8m0, {padded.rows, padded.cols});
    scales_.push_back({operands.data(scale_name), memory, static_cast<std::size_t>(scales.cols),
                       static_cast<std::size_t>(scales.rows), static_cast<std::size_t>(padded.cols),
                       static_cast<std::size_t>(scales.ld)});
    memory += aligned(padded.elements());
  };
  add(names.rowwise, names.rowwise_scales, kRowwiseData, kRowwiseScaleInv);
  add(names.columnwise, names.columnwise_scales, kColumnwiseData, kColumnwiseScaleInv);
  handle_ = tensor.handle();
}

void Mxfp8Tensor::copy_scales(Stream stream) const {
  for (const Scales& each : scales_) {
    cuda_support::check(cudaMemcpy2DAsync(each.port, each.stride, each.padded, each.pitch, each.cols, each.rows,
                                          cudaMemcpyDeviceToDevice, stream),
                        "cudaMemcpy2DAsync");
  }
}

void Mxfp8Tensor::pad_scales(Stream stream) const {
  for (const Scales& each : scales_) {
    cuda_support::check(cudaMemcpy2DAsync(each.padded, each.pitch, each.port, each.stride, each.cols, each.rows,
                                          cudaMemcpyDeviceToDevice, stream),
                        "cudaMemcpy2DAsync");
  }
}

CastOutput::CastOutput(Operands& operands, std::string_view format, const op::Mxfp8Names& names, Extents extents) {
  if (op::is_mxfp8(format)) {
    blocks_.emplace(operands, names);
  } else {
    tensor_ = &operands.output(names.rowwise, extents);
  }
}

void CastOutput::finish(Stream stream) const {
  if (blocks_.has_value()) {
    blocks_->copy_scales(stream);
  }
}

}  // namespace numcheck::kernels::transformer_engine
