#include "kernels/cuda/activation_launch.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/cuda/block_quantize_kernel.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

/// The first port whose codes have block scales; null if there is none.
const op::Port* scaled_port(std::span<const op::Port> ports) {
  const auto found = std::ranges::find_if(ports, [](const op::Port& port) { return !port.scaled_by.empty(); });
  return found == ports.end() ? nullptr : &*found;
}

}  // namespace

void quantise_mxfp8(const Tensor& values, std::span<const PortMemory> ports, cudaStream_t stream) {
  BlockQuantizeLaunch launch;
  launch.x = values;
  launch.blocks = Blocks::mx;
  for (const PortMemory& memory : ports) {
    const op::Port& codes = *memory.port;
    if (!codes.scaled_by.empty()) {
      launch.rows = codes.rows;
      launch.cols = codes.cols;
      launch.format = storage_of(codes.dtype);
      BlockCodes& layout = codes.block_rows == 1 ? launch.along_rows : launch.along_columns;
      layout.codes = address_of(ports, codes.name);
      layout.scales = address_of(ports, codes.scaled_by);
      layout.scale_line = port_memory(ports, codes.scaled_by).port->ld;
    }
  }
  cuda_support::check(launch_block_quantize(launch, stream), "te-numcheck's MXFP8 kernel");
}

std::size_t mxfp8_scratch(const Call& call, std::string_view input) {
  const op::Port* scaled = scaled_port(call.ports);
  const int bytes = core::dtype_info(op::port_named(call.ports, input).dtype).storage_bytes;
  return scaled == nullptr ? 0 : static_cast<std::size_t>(scaled->elements() * bytes);
}

Function function_of(op::Activation activation) {
  switch (activation) {
    case op::Activation::gelu:
      return Function::gelu;
    case op::Activation::gelu_erf:
      return Function::gelu_erf;
    case op::Activation::silu:
      return Function::silu;
    case op::Activation::relu:
      return Function::relu;
    case op::Activation::qgelu:
      return Function::qgelu;
    case op::Activation::srelu:
      return Function::srelu;
    case op::Activation::clamped:
      return Function::clamped;
  }
  throw core::InternalError("CUDA kernels: unknown activation");
}

ActivationLaunch activation_launch(const op::ActivationParams& params, std::span<const PortMemory> ports) {
  const op::ActivationKind& kind = op::activation_kind(params.kind);
  ActivationLaunch launch;
  launch.function = function_of(kind.function);
  launch.gated = kind.gated;
  launch.clamp = {static_cast<float>(params.limit), static_cast<float>(params.alpha),
                  static_cast<float>(params.offset)};
  launch.rows = params.rows;
  launch.hidden = params.hidden;
  launch.x = tensor_of(ports, "x");
  launch.dy = tensor_of(ports, "dy");
  return launch;
}

Algorithm activation_algorithm(cuda_support::CudaDevice& device, const Call& call, const ActivationOutput& output,
                               cudaError_t (*launch)(const ActivationLaunch&, cudaStream_t)) {
  const auto params = op::from_params<op::ActivationParams>(call.c->params);
  return {"own FP32 kernel, element by element",
          {{"access", "16 bytes per thread where aligned"}},
          mxfp8_scratch(call, "x"),
          [&device, params, output, launch](std::span<const PortMemory> ports, std::byte* workspace) {
            device.use();
            ActivationLaunch work = activation_launch(params, ports);
            const bool blocks = op::is_mxfp8(params.output);
            work.out = blocks ? Tensor{workspace, work.x.storage} : tensor_of(ports, output.name);
            work.scale = static_cast<const float*>(address_of(ports, output.scale));
            work.amax = static_cast<float*>(address_of(ports, output.amax));
            return device.timed([&] {
              cuda_support::check(launch(work, device.stream()), "te-numcheck's activation kernel");
              if (blocks) {
                quantise_mxfp8(work.out, ports, device.stream());
              }
            });
          }};
}

}  // namespace numcheck::kernels::cuda
