#include "op/quantize.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda/quantize_kernel.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr std::int64_t kMaxTransposedRows = std::int64_t{65535} * 32;  // tiles of 32 rows along the grid's y

std::string no_obstacle(const Call&) {
  return {};
}

std::string transpose_obstacle(const Call& call) {
  return op::port_named(call.ports, "x").rows <= kMaxTransposedRows
             ? std::string()
             : "te-numcheck's own kernel transposes at most " + std::to_string(kMaxTransposedRows) + " rows";
}

std::string quantize_obstacle(const Call& call) {
  const bool transposes = op::from_params<op::QuantizeParams>(call.c->params).layout != "rowwise";
  return transposes ? transpose_obstacle(call) : std::string();
}

template <class Launch>
Algorithm algorithm(cuda_support::CudaDevice& device, std::string order, Launch launch) {
  return {
      "own kernel", {{"order", std::move(order)}}, 0, [&device, launch](std::span<const PortMemory> ports, std::byte*) {
        device.use();
        return device.timed([&] { cuda_support::check(launch(ports, device.stream()), "te-numcheck's cast kernel"); });
      }};
}

Algorithm quantize_algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::QuantizeParams>(call.c->params);
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

Algorithm dequantize_algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::DequantizeParams>(call.c->params);
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
