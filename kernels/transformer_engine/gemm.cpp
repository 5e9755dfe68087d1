#include "op/gemm.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "kernels/cuda_support/addend.hpp"
#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"
#include "op/gemm_scaling.hpp"
#include "op/output_format.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

constexpr std::array<std::string_view, 5> kModes = {"tf32", "bf16", "fp16", "fp8_e4m3", "fp8_hybrid"};

/// What TransformerEngine's framework bindings give cuBLASLt: 32 MiB and a little from Hopper on, else 4 MiB. The size
/// decides which algorithm runs, and hence the bits. Source: TransformerEngine pytorch/cpp_extensions/gemm.py.
std::size_t workspace_bytes(int sm) {
  return sm >= 90 ? (std::size_t{32} << 20) + 1024 : std::size_t{4} << 20;
}

std::string mode_obstacle(const op::Mode& mode) {
  if (std::ranges::find(kModes, mode.name) != kModes.end()) {
    return {};
  }
  if (mode.name == "fp32") {
    return "TransformerEngine multiplies FP32 tensors as TF32 (it requests CUBLAS_COMPUTE_32F_FAST_TF32): use the mode "
           "tf32, and NVIDIA_TF32_OVERRIDE=0 for FP32 products";
  }
  return fmt::format("TransformerEngine's products support the modes tf32, bf16, fp16, fp8_e4m3 and fp8_hybrid, not {}",
                     mode.name);
}

std::string shape_obstacle(const op::GemmParams& p) {
  constexpr std::int64_t kLargest = std::numeric_limits<int>::max();
  if (p.batch > 1) {
    return "TransformerEngine's product of two tensors is not batched";
  }
  if (p.m > kLargest || p.n > kLargest || p.k > kLargest) {
    return "TransformerEngine counts rows and columns in 32 bits";
  }
  return p.epilogue == "relu" ? "TransformerEngine's products have no relu epilogue" : "";
}

std::string fp8_obstacle(const Context& context, const op::GemmParams& p) {
  if (const int sm = context.info.sm; sm < 89) {
    return fmt::format("FP8 products need sm_89 or newer; this device is sm_{}", sm);
  }
  if ((p.trans_a || !p.trans_b) && context.library.call(kNonTnFp8Supported) == 0) {
    return fmt::format(
        "on sm_{} TransformerEngine multiplies FP8 tensors only as A B^T and needs transposed copies for other "
        "layouts: set trans_a to false and trans_b to true",
        context.info.sm);
  }
  return {};
}

std::string scaling_obstacle(const Context& context, const op::GemmParams& p) {
  if (!op::has_line_scales(p)) {
    return {};
  }
  if (p.scaling == "outer_vector") {
    return "TransformerEngine has no scales of rows and columns";
  }
  if (context.info.sm != 90) {
    return fmt::format("TransformerEngine multiplies FP8 blocks with FP32 scales on sm_90 only; this device is sm_{}",
                       context.info.sm);
  }
  return p.epilogue == "gelu" ? "TransformerEngine's products of FP8 blocks have no gelu epilogue" : "";
}

std::string output_obstacle(const Call& call, const op::GemmParams& p) {
  const core::Dtype output = op::gemm_output_dtype(p, *call.c->mode);
  if (core::is_fp8(output) && p.beta != 0) {
    return "TransformerEngine does not accumulate into an FP8 output";
  }
  if (p.beta != 0 && !p.in_place) {
    return "TransformerEngine accumulates into D in place: set in_place to true";
  }
  return {};
}

std::string gemm_obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<op::GemmParams>(call.c->params);
  for (std::string obstacle : {mode_obstacle(*call.c->mode), layout_obstacle(call), shape_obstacle(p),
                               context.library.lacks({kGemm.name, kCreateMatmulConfig.name, kNonTnFp8Supported.name}),
                               output_obstacle(call, p), scaling_obstacle(context, p)}) {
    if (!obstacle.empty()) {
      return obstacle;
    }
  }
  return call.c->mode->scaled ? fp8_obstacle(context, p) : std::string();
}

/// Everything that one product needs except the call itself.
struct Product {
  Product(Operands& operands, const op::GemmParams& p, bool split, std::byte* memory, std::size_t bytes)
      : config(operands.context().library),
        a(operands.input("b", {p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n})),
        b(operands.input("a", {p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k})),
        d(operands.tensor(operands.data("d"), data_type(operands.port("d").dtype), {p.m, p.n})),
        workspace(operands.tensor(memory, kByte, {static_cast<std::int64_t>(bytes)})) {
    if (operands.has("d_scale")) {
      d.set_scalar(kScale, operands.data("d_scale"));
      d.set_scalar(kAmax, operands.data("d_amax"));
    }
    config.set(kMatmulSplitAccumulator, split);
    if (p.bias) {
      config.set(kMatmulBias, operands.input("bias", {p.n}).handle());
    }
  }

  MatmulConfig config;
  Tensor& a;
  Tensor& b;
  Tensor& d;
  Tensor& workspace;
};

/// Format of what the GELU epilogue saves: D's, or BF16 with an FP8 D.
int aux_type(core::Dtype output) {
  return core::is_fp8(output) ? static_cast<int>(kBfloat16) : data_type(output);
}

Algorithm gemm_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::GemmParams>(call.c->params);
  const bool split = op::gemm_promotes(p, *call.c->mode);
  const bool gelu = p.epilogue == "gelu";
  const int aux = aux_type(op::gemm_output_dtype(p, *call.c->mode));
  const std::size_t space = workspace_bytes(context.info.sm);
  const std::size_t aux_bytes = gelu ? static_cast<std::size_t>(p.m * p.n) * bytes_of(aux) : 0;
  Algorithm algorithm = {
      readable_name(kGemm.name),
      {{"function", std::string(kGemm.name)}, {"transformer_engine", context.library.version()}},
      aligned(space) + aux_bytes,
      [=](std::span<const PortMemory> ports, std::byte* memory) {
        context.device->use();
        Operands operands(context, ports, nullptr);
        Product product(operands, p, split, memory, space);
        if (gelu) {
          product.config.set(kMatmulGeluEpilogue, true);
          product.config.set(kMatmulEpilogueAux, operands.tensor(memory + aligned(space), aux, {p.m, p.n}).handle());
        }
        if (p.in_place) {
          cuda_support::copy_addend(ports, operands.stream());
        }
        const auto alpha = static_cast<float>(p.alpha);
        const auto beta = static_cast<float>(p.beta);
        return context.device->timed([&] {
          context.library.call(kGemm, p.trans_b ? 1 : 0, p.trans_a ? 1 : 0, &alpha, product.a.handle(),
                               product.b.handle(), &beta, product.d.handle(), product.d.handle(),
                               product.workspace.handle(), product.config.handle(), operands.stream());
        });
      }};
  if (gelu || p.bias) {
    algorithm.details.emplace_back("epilogue", !gelu ? "BIAS" : p.bias ? "GELU_AUX_BIAS" : "GELU_AUX");
  }
  if (p.in_place) {
    algorithm.details.emplace_back("addend", "in place");
  }
  algorithm.rounding = {.in_place = p.in_place, .bias = p.bias, .gelu = gelu};
  return algorithm;
}

}  // namespace

// Row-major D = op(A) op(B) is column-major D^T = op(B)^T op(A)^T: the library's first operand is our B, its second
// our A, and transposition flags stay with their matrix.
//
// TransformerEngine requests TF32 products from cuBLASLt whenever A, B and D are FP32, so it has the mode tf32 and not
// fp32 (with NVIDIA_TF32_OVERRIDE=0, cuBLASLt computes FP32 products nevertheless). It accumulates into D in place, so
// C is copied there first; its GELU epilogue saves GELU's input, here into the workspace. FP8 operands are multiplied
// as A B^T; other layouts need transposed copies below sm_100. Source: TransformerEngine common/gemm/cublaslt_gemm.cu.
const Binding& gemm() {
  static const TeBinding binding{{"transformer_engine", "gemm", kArithmetic}, &gemm_obstacle, &gemm_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
