#include "kernels/transformer_engine/nvfp4.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "kernels/cuda_support/check.hpp"
#include "kernels/transformer_engine/mxfp8.hpp"
#include "op/nvfp4.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

constexpr int kFirstWithFp4 = 100;  // compute capability
constexpr std::int64_t kScaleLines = 128, kScaleColumns = 4;

/// Seed and offset of the generator.
using RngState = std::array<std::int64_t, 2>;

std::int64_t padded_to(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/// Codes of one layout, lines of so many elements.
struct Lines {
  std::int64_t count = 0;
  std::int64_t length = 0;

  explicit Lines(const op::BlockLayout& layout)
      : count(layout.codes_transposed ? layout.cols : layout.rows),
        length(layout.codes_transposed ? layout.rows : layout.cols) {}

  /// Shape in which the library expects their scales.
  /// Source: TransformerEngine common/transformer_engine.cpp, CheckScaleTensorShape.
  [[nodiscard]] std::int64_t scale_lines() const { return padded_to(count, kScaleLines); }
  [[nodiscard]] std::int64_t scale_columns() const {
    return padded_to((length + op::kNvfp4Block - 1) / op::kNvfp4Block, kScaleColumns);
  }
  [[nodiscard]] std::size_t scale_bytes() const {
    return aligned(static_cast<std::size_t>(scale_lines() * scale_columns()));
  }
};

/// An NVFP4 tensor of ports. The library's scales are padded to more rows than the ports have, so they are in scratch memory.
class Nvfp4Tensor {
 public:
  /// `memory`: scale_bytes() of all layouts that the case has.
  Nvfp4Tensor(Operands& o, const std::vector<op::BlockLayout>& layouts, std::string_view global_amax,
              std::byte* memory) {
    Tensor& tensor = o.none(kNvfp4);
    for (const op::BlockLayout& layout : layouts) {
      if (!o.has(layout.codes)) {
        continue;
      }
      const Lines lines(layout);
      const bool turned = layout.codes_transposed;
      tensor.set(turned ? kColumnwiseData : kRowwiseData, o.data(layout.codes), kFloat4E2m1,
                 {lines.count, lines.length});
      tensor.set(turned ? kColumnwiseScaleInv : kRowwiseScaleInv, memory, kFloat8E4m3,
                 {lines.scale_lines(), lines.scale_columns()});
      const op::Port& port = o.port(layout.scales);
      scales_.push_back({o.data(layout.scales), memory, static_cast<std::size_t>(port.cols),
                         static_cast<std::size_t>(port.rows), static_cast<std::size_t>(lines.scale_columns()),
                         static_cast<std::size_t>(port.ld)});
      memory += lines.scale_bytes();
      if (turned) {
        tensor.set_scalar(kColumnwiseAmax, o.data(global_amax));
      }
    }
    tensor.set_scalar(kAmax, o.data(global_amax));
    handle_ = tensor.handle();
  }

  [[nodiscard]] Handle handle() const noexcept { return handle_; }

  void copy_scales(Stream stream) const {
    for (const Scales& each : scales_) {
      copy(each.port, each.stride, each.padded, each.pitch, each, stream);
    }
  }
  void pad_scales(Stream stream) const {
    for (const Scales& each : scales_) {
      copy(each.padded, each.pitch, each.port, each.stride, each, stream);
    }
  }

 private:
  struct Scales {
    std::byte* port;
    std::byte* padded;
    std::size_t cols, rows;
    std::size_t pitch;   ///< bytes from one row of the padded ones to the next
    std::size_t stride;  ///< the same of the port
  };

  static void copy(std::byte* to, std::size_t to_pitch, const std::byte* from, std::size_t from_pitch,
                   const Scales& size, Stream stream) {
    cuda_support::check(
        cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, size.cols, size.rows, cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpy2DAsync");
  }

  std::vector<Scales> scales_;
  Handle handle_ = nullptr;
};

Enqueue prepare_quantize(Operands& o, const op::QuantizeParams& p) {
  Handle x = o.tensor(o.data("x"), data_type(o.port("x").dtype), {p.rows, p.cols}).handle();
  const Nvfp4Tensor codes(o, p.layouts(), "global_amax", o.extra() + aligned(sizeof(RngState)));
  const auto config = std::make_shared<AttributeObject>(o.context().library, kQuantizeConfig);
  config->set(kQuantizeNvfp4Square, p.block_shape == "16x16");
  config->set(kQuantizeStochastic, p.stochastic);
  if (p.stochastic) {
    const RngState state = {p.rng_seed, 0};
    o.context().device->memory().upload(o.extra(), std::as_bytes(std::span(state)));
    config->set(kQuantizeRngState, o.tensor(o.extra(), kInt64, {static_cast<std::int64_t>(state.size())}).handle());
  }
  return [=, &o](Handle) {
    o.context().library.call(kQuantizeV2, x, codes.handle(), config->handle(), o.stream());
    codes.copy_scales(o.stream());
  };
}

/// Whether the library takes the kernel that has only hardware's casts to FP4.
/// Source: TransformerEngine common/cast/dispatch/quantize.cuh, use_optimized_kernel.
bool needs_hardware(const op::QuantizeParams& p, core::Dtype input) {
  constexpr std::int64_t kTile = 32;
  const bool is_tiled = input == core::Dtype::bf16 && p.rows % kTile == 0 && p.cols % kTile == 0;
  return !p.stochastic || (is_tiled && (p.layout != "columnwise" || p.block_shape == "16x16"));
}

}  // namespace

std::string nvfp4_obstacle(const Context& context, const op::QuantizeParams& p, const Call& call) {
  if (p.rows % op::kNvfp4Block != 0 || p.cols % op::kNvfp4Block != 0) {
    return fmt::format(
        "TransformerEngine's NVFP4 tensors are whole blocks of 16: rows and cols must be multiples, not {} and {}",
        p.rows, p.cols);
  }
  if (p.hadamard) {
    return "te-numcheck does not call TransformerEngine's Hadamard transforms yet: set hadamard to false";
  }
  if (context.info.sm < kFirstWithFp4) {
    const core::Dtype input = call.c->mode->first;
    if (!p.stochastic) {
      return mxfp8_device_obstacle(context, "rounds to the nearest NVFP4 codes");
    }
    if (needs_hardware(p, input)) {
      return mxfp8_device_obstacle(context, "rounds BF16 tensors of 32 x 32 elements to NVFP4 codes");
    }
    if (!context.library.at_least(2, 20).value_or(false)) {
      return fmt::format(
          "TransformerEngine rounds to NVFP4 codes at random on such a device only from 2.20 on, and this library is "
          "{}",
          context.library.version());
    }
  }
  return context.library.lacks(
      {kQuantizeV2.name, kCreateQuantizeConfig.name, kDestroyQuantizeConfig.name, kSetQuantizeConfig.name});
}

std::string nvfp4_obstacle(const Context& context, const op::DequantizeParams& p) {
  if (p.cols % op::kNvfp4Block != 0) {
    return fmt::format("TransformerEngine dequantises whole blocks of 16 NVFP4 codes: cols must be a multiple, not {}",
                       p.cols);
  }
  return context.library.lacks({kDequantize.name});
}

Algorithm nvfp4_algorithm(const Context& context, const op::QuantizeParams& p) {
  std::size_t bytes = aligned(sizeof(RngState));
  for (const op::BlockLayout& layout : p.layouts()) {
    bytes += Lines(layout).scale_bytes();
  }
  return single_call(context, kQuantizeV2.name, [p](Operands& o) { return prepare_quantize(o, p); }, bytes);
}

Algorithm nvfp4_algorithm(const Context& context, const op::DequantizeParams& p) {
  const Prepare prepare = [p](Operands& o) -> Enqueue {
    const Nvfp4Tensor codes(o, {p.blocks()}, "q_global_amax", o.extra());
    Handle y = o.tensor(o.data("y"), data_type(o.port("y").dtype), {p.rows, p.cols}).handle();
    return [=, &o](Handle) {
      codes.pad_scales(o.stream());
      o.context().library.call(kDequantize, codes.handle(), y, o.stream());
    };
  };
  return single_call(context, kDequantize.name, prepare, Lines(p.blocks()).scale_bytes());
}

}  // namespace numcheck::kernels::transformer_engine
