#include "kernels/cuda/gemm_launch.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "kernels/contract/ports.hpp"
#include "kernels/cuda/storage.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr std::array<std::string_view, 7> kModes = {"fp32",     "fp32_pedantic", "bf16",    "fp16",
                                                    "fp8_e4m3", "fp8_hybrid",    "fp4_e2m1"};

MatrixView view_of(std::span<const PortMemory> ports, std::string_view name) {
  const PortMemory* memory = find_port(ports, name);
  if (memory == nullptr) {
    return {};
  }
  const op::Port& port = *memory->port;
  return {first_element(memory), storage_of(port.dtype), port.ld, port.batch_stride};
}

Epilogue epilogue_of(const op::GemmParams& params) {
  if (params.epilogue == "relu") {
    return Epilogue::relu;
  }
  return params.epilogue == "gelu" ? Epilogue::gelu : Epilogue::none;
}

/// The only scale of an operand.
ScaleView scale_of_all(std::span<const PortMemory> ports, std::string_view name) {
  return {reinterpret_cast<const float*>(first_element(find_port(ports, name)))};
}

ScaleView view_of(std::span<const PortMemory> ports, const op::BlockLayout& layout) {
  ScaleView view;
  if (layout.scale_format == core::Dtype::fp32) {
    view = scale_of_all(ports, layout.scales);
  } else {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(first_element(find_port(ports, layout.scales)));
    (layout.scale_format == core::Dtype::e8m0 ? view.exponents : view.e4m3) = bytes;
  }
  const op::ScaleSteps steps = layout.steps(find_port(ports, layout.scales)->port->ld);
  view.lines = layout.block_rows;
  view.by_line = steps.down;
  view.by_part = steps.across;
  return view;
}

void set_scales(const op::GemmParams& p, std::span<const PortMemory> ports, GemmLaunch& launch) {
  if (op::has_line_scales(p)) {
    launch.a_scales = view_of(ports, op::scales_of_a(p));
    launch.b_scales = view_of(ports, op::scales_of_b(p));
    launch.products = op::scaled_products(p);
    if (op::has_global_scales(p)) {
      launch.a_factor = scale_of_all(ports, "a_global_scale").data;
      launch.b_factor = scale_of_all(ports, "b_global_scale").data;
    }
  } else if (find_port(ports, "a_scale_inv") != nullptr) {
    launch.a_scales = scale_of_all(ports, "a_scale_inv");
    launch.b_scales = scale_of_all(ports, "b_scale_inv");
    launch.products = std::max<std::int64_t>(p.k, 1);
  }
}

}  // namespace

std::string product_obstacle(const op::Mode& mode, const op::GemmParams& product) {
  if (std::ranges::find(kModes, mode.name) == kModes.end()) {
    return fmt::format(
        "te-numcheck's own kernel computes in FP32 only, for the modes fp32, fp32_pedantic, bf16, fp16, fp8_e4m3, "
        "fp8_hybrid and fp4_e2m1, not {}",
        mode.name);
  }
  return core::is_fp8(op::gemm_output_dtype(product, mode))
             ? "te-numcheck's own kernel has no FP8 outputs of products: set output to fp32, bf16 or fp16"
             : "";
}

GemmLaunch gemm_launch(const op::GemmParams& p, std::span<const PortMemory> ports) {
  GemmLaunch launch;
  launch.m = p.m;
  launch.n = p.n;
  launch.k = p.k;
  launch.batch = p.batch;
  launch.trans_a = p.trans_a;
  launch.trans_b = p.trans_b;
  launch.alpha = static_cast<float>(p.alpha);
  launch.beta = static_cast<float>(p.beta);
  launch.epilogue = epilogue_of(p);
  launch.a = view_of(ports, "a");
  launch.b = view_of(ports, "b");
  launch.c = view_of(ports, p.in_place ? "d" : "c");
  launch.d = view_of(ports, "d");
  launch.bias = view_of(ports, "bias");
  set_scales(p, ports, launch);
  return launch;
}

}  // namespace numcheck::kernels::cuda
