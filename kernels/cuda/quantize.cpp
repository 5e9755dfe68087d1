#include "op/quantize.hpp"

#include "kernels/contract/ports.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/block_quantize_kernel.hpp"
#include "kernels/cuda/nvfp4_kernel.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda/quantize_kernel.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

std::string no_obstacle(const Call&) {
  return {};
}

std::string transpose_obstacle(const Call& call) {
  return op::port_named(call.ports, "x").rows <= kMaxTransposedRows
             ? std::string()
             : "te-numcheck's own kernel transposes at most " + std::to_string(kMaxTransposedRows) + " rows";
}

std::string quantize_obstacle(const Call& call) {
  const auto p = op::from_params<op::QuantizeParams>(call.c->params);
  return p.layout != "rowwise" && p.recipe == "tensor" ? transpose_obstacle(call) : std::string();
}

template <class Launch>
Algorithm algorithm(cuda_support::CudaDevice& device, std::string order, Launch launch) {
  return {
      "own kernel", {{"order", std::move(order)}}, 0, [&device, launch](std::span<const PortMemory> ports, std::byte*) {
        device.use();
        return device.timed([&] { cuda_support::check(launch(ports, device.stream()), "te-numcheck's cast kernel"); });
      }};
}

BlockCodes codes_of(std::span<const PortMemory> ports, const op::BlockLayout& layout) {
  BlockCodes codes;
  codes.codes = address_of(ports, layout.codes);
  if (codes.codes != nullptr) {
    const op::ScaleSteps steps = layout.steps(port_memory(ports, layout.scales).port->ld);
    codes.transposed = layout.codes_transposed;
    codes.scales = address_of(ports, layout.scales);
    codes.scale_line = steps.down;
    codes.scale_step = steps.across;
  }
  return codes;
}

Blocks blocks_of(op::QuantizeRecipe recipe) {
  switch (recipe) {
    case op::QuantizeRecipe::block_128x128:
      return Blocks::square;
    case op::QuantizeRecipe::mxfp8:
      return Blocks::mx;
    default:
      return Blocks::line;
  }
}

Algorithm block_quantize_algorithm(cuda_support::CudaDevice& device, const op::QuantizeParams& p) {
  return algorithm(device, "tiles of 128 x 128", [p](std::span<const PortMemory> ports, cudaStream_t stream) {
    BlockQuantizeLaunch launch;
    launch.rows = p.rows;
    launch.cols = p.cols;
    launch.x = tensor_of(ports, "x");
    launch.blocks = blocks_of(op::quantize_recipe(p.recipe));
    launch.format = p.format == "fp8_e5m2" ? Storage::fp8_e5m2 : Storage::fp8_e4m3;
    launch.along_rows = codes_of(ports, p.rowwise());
    launch.along_columns = codes_of(ports, p.columnwise());
    launch.epsilon = static_cast<float>(p.epsilon);
    launch.power_of_two = p.has_power_of_two();
    launch.round_up = p.rounding == "up";
    return launch_block_quantize(launch, stream);
  });
}

/// Codes and scales of one layout; null if the case does not have it.
Nvfp4Codes nvfp4_codes(std::span<const PortMemory> ports, const op::BlockLayout& layout) {
  Nvfp4Codes codes;
  codes.codes = static_cast<unsigned char*>(address_of(ports, layout.codes));
  if (codes.codes != nullptr) {
    codes.scales = static_cast<unsigned char*>(address_of(ports, layout.scales));
    codes.scale_line = port_memory(ports, layout.scales).port->ld;
  }
  return codes;
}

Algorithm nvfp4_quantize_algorithm(cuda_support::CudaDevice& device, const op::QuantizeParams& p) {
  return algorithm(device, "tiles of 16 x 16", [p](std::span<const PortMemory> ports, cudaStream_t stream) {
    Nvfp4QuantizeLaunch launch;
    launch.rows = p.rows;
    launch.cols = p.cols;
    launch.x = tensor_of(ports, "x");
    launch.global_amax = static_cast<const float*>(address_of(ports, "global_amax"));
    launch.is_square = p.block_shape == "16x16";
    launch.is_stochastic = p.stochastic;
    launch.seed = static_cast<std::uint64_t>(p.rng_seed);
    launch.transformed_amax = static_cast<const float*>(address_of(ports, "global_amax_t"));
    launch.along_rows = nvfp4_codes(ports, p.rowwise());
    launch.along_columns = nvfp4_codes(ports, p.columnwise());
    return launch_nvfp4_quantize(launch, stream);
  });
}

Algorithm nvfp4_dequantize_algorithm(cuda_support::CudaDevice& device, const op::DequantizeParams& p) {
  return algorithm(device, "blocks of 16", [p](std::span<const PortMemory> ports, cudaStream_t stream) {
    const Nvfp4Codes codes = nvfp4_codes(ports, p.blocks());
    Nvfp4DequantizeLaunch launch;
    launch.rows = p.rows;
    launch.cols = p.cols;
    launch.codes = codes.codes;
    launch.scales = codes.scales;
    launch.scale_line = codes.scale_line;
    launch.global_amax = static_cast<const float*>(address_of(ports, "q_global_amax"));
    launch.y = tensor_of(ports, "y");
    return launch_nvfp4_dequantize(launch, stream);
  });
}

Algorithm quantize_algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::QuantizeParams>(call.c->params);
  if (const op::QuantizeRecipe recipe = op::quantize_recipe(p.recipe); recipe != op::QuantizeRecipe::tensor) {
    return recipe == op::QuantizeRecipe::nvfp4 ? nvfp4_quantize_algorithm(device, p)
                                               : block_quantize_algorithm(device, p);
  }
  return algorithm(device, "elementwise", [p](std::span<const PortMemory> ports, cudaStream_t stream) {
    QuantizeLaunch launch;
    launch.rows = p.rows;
    launch.cols = p.cols;
    launch.x = tensor_of(ports, "x");
    launch.q = tensor_of(ports, "q");
    launch.q_t = tensor_of(ports, "q_t");
    launch.scale = static_cast<const float*>(address_of(ports, "scale"));
    launch.amax = static_cast<float*>(address_of(ports, "amax"));
    launch.scale_inv = static_cast<float*>(address_of(ports, "scale_inv"));
    return launch_quantize(launch, stream);
  });
}

Algorithm block_dequantize_algorithm(cuda_support::CudaDevice& device, const op::DequantizeParams& p) {
  return algorithm(device, "elementwise", [p](std::span<const PortMemory> ports, cudaStream_t stream) {
    const op::BlockLayout layout = p.blocks();
    const op::ScaleSteps steps = layout.steps(port_memory(ports, layout.scales).port->ld);
    BlockDequantizeLaunch launch;
    launch.rows = p.rows;
    launch.cols = p.cols;
    launch.q = tensor_of(ports, layout.codes);
    launch.y = tensor_of(ports, "y");
    launch.block_rows = layout.block_rows;
    launch.block_cols = layout.block_cols;
    launch.has_exponents = layout.scale_format == core::Dtype::e8m0;
    launch.scales = address_of(ports, layout.scales);
    launch.scale_line = steps.down;
    launch.scale_step = steps.across;
    return launch_block_dequantize(launch, stream);
  });
}

Algorithm dequantize_algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::DequantizeParams>(call.c->params);
  if (const op::QuantizeRecipe recipe = op::quantize_recipe(p.recipe); recipe != op::QuantizeRecipe::tensor) {
    return recipe == op::QuantizeRecipe::nvfp4 ? nvfp4_dequantize_algorithm(device, p)
                                               : block_dequantize_algorithm(device, p);
  }
  return algorithm(device, "elementwise", [p](std::span<const PortMemory> ports, cudaStream_t stream) {
    return launch_dequantize(tensor_of(ports, "q"), static_cast<const float*>(address_of(ports, "q_scale_inv")),
                             tensor_of(ports, "y"), p.rows * p.cols, stream);
  });
}

Algorithm transpose_algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::TransposeParams>(call.c->params);
  return algorithm(device, "tiles of 32 x 32", [p](std::span<const PortMemory> ports, cudaStream_t stream) {
    const Tensor x = tensor_of(ports, "x");
    return launch_transpose(x.data, tensor_of(ports, "y").data, p.rows, p.cols, storage_bytes(x.storage), stream);
  });
}

}  // namespace

const Binding& quantize() {
  static const CudaBinding binding{{"cuda", "quantize"}, &quantize_obstacle, &quantize_algorithm};
  return binding;
}

const Binding& dequantize() {
  static const CudaBinding binding{{"cuda", "dequantize"}, &no_obstacle, &dequantize_algorithm};
  return binding;
}

const Binding& transpose() {
  static const CudaBinding binding{{"cuda", "transpose"}, &transpose_obstacle, &transpose_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
