#include "op/gemm.hpp"

#include <memory>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "kernels/cuda_support/addend.hpp"
#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"
#include "kernels/transformer_engine/matmul_calls.hpp"
#include "kernels/transformer_engine/product_rules.hpp"
#include "op/output_format.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

std::string shape_obstacle(const op::GemmParams& p) {
  return p.batch > 1 ? "TransformerEngine's product of two tensors is not batched" : "";
}

std::string gemm_obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<op::GemmParams>(call.c->params);
  for (std::string obstacle : {product_mode_obstacle(*call.c->mode), layout_obstacle(call), product_size_obstacle(p),
                               shape_obstacle(p), product_epilogue_obstacle(p),
                               context.library.lacks({kGemm.name, kCreateMatmulConfig.name, kNonTnFp8Supported.name}),
                               product_output_obstacle(*call.c->mode, p), product_scaling_obstacle(context, p)}) {
    if (!obstacle.empty()) {
      return obstacle;
    }
  }
  return call.c->mode->scaled ? fp8_product_obstacle(context, p) : std::string();
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

Algorithm gemm_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::GemmParams>(call.c->params);
  const bool split = op::gemm_promotes(p, *call.c->mode);
  const bool gelu = p.epilogue == "gelu";
  const int aux = gelu_input_type(op::gemm_output_dtype(p, *call.c->mode));
  const std::size_t space = product_workspace(context.info.sm);
  const auto calls = std::make_shared<MatmulCalls::Algorithms>();
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
          const MatmulCalls noting(*calls);
          context.library.call(kGemm, p.trans_b ? 1 : 0, p.trans_a ? 1 : 0, &alpha, product.a.handle(),
                               product.b.handle(), &beta, product.d.handle(), product.d.handle(),
                               product.workspace.handle(), product.config.handle(), operands.stream());
        });
      }};
  add_product_options(p, algorithm);
  algorithm.shown = [calls] { return shown_by(*calls); };
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
