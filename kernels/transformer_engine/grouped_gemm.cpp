#include "op/grouped_gemm.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "kernels/contract/group_ports.hpp"
#include "kernels/cuda_support/addend.hpp"
#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"
#include "kernels/transformer_engine/matmul_calls.hpp"
#include "kernels/transformer_engine/product_rules.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

bool has_outputs(const op::GemmParams& product) {
  return product.m != 0 && product.n != 0;
}

std::string sizes_obstacle(const std::vector<op::GemmParams>& products) {
  if (std::ranges::none_of(products, has_outputs)) {
    return "TransformerEngine does not accept empty tensors, and no group has outputs";
  }
  for (std::size_t group = 0; group < products.size(); ++group) {
    if (std::string obstacle = product_size_obstacle(products[group]); !obstacle.empty()) {
      return obstacle;
    }
    if (has_outputs(products[group]) && products[group].k == 0) {
      return fmt::format(
          "TransformerEngine's products need k > 0, and group {} has none: its frameworks leave such groups out and "
          "clear their outputs themselves",
          group);
    }
  }
  return {};
}

std::string factors_obstacle(const op::GroupedGemmParams& p) {
  return p.alpha == 1 && (p.beta == 0 || p.beta == 1)
             ? std::string()
             : fmt::format(
                   "nvte_multi_tensor_gemm has no factors: set alpha to 1, not {:g}, and beta to 0 or 1, not {:g}",
                   p.alpha, p.beta);
}

/// Groups are multiplied as soon as the function is called, so that what one of them lacks is said here.
/// Source: TransformerEngine common/gemm/cublaslt_gemm.cu; cuBLAS manual, cublasLtMatmul.
std::string fp8_rows_obstacle(const std::vector<op::GemmParams>& products, const op::Mode& mode) {
  for (std::size_t group = 0; group < products.size(); ++group) {
    const op::GemmParams& p = products[group];
    const std::int64_t of_a = p.trans_a ? p.m : p.k, of_b = p.trans_b ? p.k : p.n;
    const std::int64_t bytes = core::dtype_info(op::gemm_output_dtype(p, mode)).storage_bytes;
    if (has_outputs(p) && (of_a % 16 != 0 || of_b % 16 != 0 || p.n * bytes % 16 != 0)) {
      return fmt::format(
          "TransformerEngine's FP8 products need rows of multiples of 16 bytes; those of group {} have {} and {} "
          "codes, "
          "and {} outputs of {} bytes",
          group, of_a, of_b, p.n, bytes);
    }
  }
  return {};
}

std::string grouped_obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<op::GroupedGemmParams>(call.c->params);
  const std::vector<op::GemmParams> products = op::products_of(p);
  for (std::string obstacle :
       {product_mode_obstacle(*call.c->mode), factors_obstacle(p), sizes_obstacle(products),
        product_epilogue_obstacle(products.front()),
        context.library.lacks({kMultiTensorGemm.name, kComputeStreams.name, kNonTnFp8Supported.name}),
        product_output_obstacle(*call.c->mode, products.front()),
        product_scaling_obstacle(context, products.front())}) {
    if (!obstacle.empty()) {
      return obstacle;
    }
  }
  if (!call.c->mode->scaled) {
    return {};
  }
  std::string obstacle = fp8_product_obstacle(context, products.front());
  return obstacle.empty() ? fp8_rows_obstacle(products, *call.c->mode) : obstacle;
}

/// The lists that the function takes. Column-major: its first operand is our B.
struct Lists {
  std::vector<Handle> a, b, d, bias, pre_gelu, workspaces;

  /// `gelu_input` has room for what GELU's epilogue saves; null without one.
  void add(Operands& group, const op::GemmParams& p, std::byte* gelu_input) {
    a.push_back(group.input("b", {p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n}).handle());
    b.push_back(group.input("a", {p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k}).handle());
    Tensor& out = group.tensor(group.data("d"), data_type(group.port("d").dtype), {p.m, p.n});
    if (group.has("d_scale")) {
      out.set_scalar(kScale, group.data("d_scale"));
      out.set_scalar(kAmax, group.data("d_amax"));
    }
    d.push_back(out.handle());
    bias.push_back((p.bias ? group.input("bias", {p.n}) : group.none()).handle());
    const int aux = gelu_input_type(group.port("d").dtype);
    pre_gelu.push_back((gelu_input == nullptr ? group.none() : group.tensor(gelu_input, aux, {p.m, p.n})).handle());
  }
};

/// What GELU's epilogue saves of a group.
std::size_t gelu_input_bytes(const op::GemmParams& p, const op::Mode& mode) {
  return p.epilogue == "gelu"
             ? aligned(static_cast<std::size_t>(p.m * p.n) * bytes_of(gelu_input_type(op::gemm_output_dtype(p, mode))))
             : 0;
}

/// The tensors of one launch, and the lists of them. `memory` has room for what GELU's epilogue saves of all groups.
class Launch {
 public:
  Launch(const Context& context, std::span<const PortMemory> ports, const std::vector<op::GemmParams>& products,
         const op::Mode& mode, std::byte* memory)
      : groups_(groups_of(ports, products.size())) {
    for (std::size_t i = 0; i < products.size(); ++i) {
      if (has_outputs(products[i])) {
        const std::size_t bytes = gelu_input_bytes(products[i], mode);
        lists.add(operands_.emplace_back(context, groups_[i].memory(), nullptr), products[i],
                  bytes == 0 ? nullptr : memory);
        memory += bytes;
      }
    }
  }

  void add_workspaces(int count, std::byte* memory, std::size_t bytes) {
    for (int i = 0; i < count; ++i) {
      std::byte* own = memory + static_cast<std::size_t>(i) * aligned(bytes);
      lists.workspaces.push_back(operands_.front().tensor(own, kByte, {static_cast<std::int64_t>(bytes)}).handle());
    }
  }

  void copy_addends(Stream stream) const {
    for (const GroupPorts& group : groups_) {
      cuda_support::copy_addend(group.memory(), stream);
    }
  }

  Lists lists;

 private:
  std::vector<GroupPorts> groups_;
  std::deque<Operands> operands_;
};

/// A group that the library refuses leaves those before it running, on streams of the library that nobody else waits for.
void multiply(const Context& context, const op::GroupedGemmParams& p, Lists& lists, bool split) try {
  context.library.call(kMultiTensorGemm, lists.a.data(), lists.b.data(), lists.d.data(), lists.bias.data(),
                       lists.pre_gelu.data(), static_cast<int>(lists.a.size()), p.trans_b, p.trans_a, false,
                       lists.workspaces.data(), p.beta != 0, split, 0, context.device->stream());
} catch (...) {
  context.device->memory().synchronize();
  throw;
}

Algorithm grouped_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::GroupedGemmParams>(call.c->params);
  const std::vector<op::GemmParams> products = op::products_of(p);
  const op::Mode& mode = *call.c->mode;
  const bool split = op::gemm_promotes(products.front(), mode);
  const int streams = context.library.call(kComputeStreams);
  const std::size_t space = product_workspace(context.info.sm);
  const std::size_t all_space = static_cast<std::size_t>(streams) * aligned(space);
  std::size_t saved = 0;
  for (const op::GemmParams& product : products) {
    saved += gelu_input_bytes(product, mode);
  }
  const auto calls = std::make_shared<MatmulCalls::Algorithms>();
  const char* cutlass = std::getenv("NVTE_USE_CUTLASS_GROUPED_GEMM");
  Algorithm algorithm = {readable_name(kMultiTensorGemm.name),
                         {{"function", std::string(kMultiTensorGemm.name)},
                          {"transformer_engine", context.library.version()},
                          {"streams", std::to_string(streams)},
                          {"NVTE_USE_CUTLASS_GROUPED_GEMM", cutlass == nullptr ? "unset" : cutlass}},
                         all_space + saved,
                         [=, &mode](std::span<const PortMemory> ports, std::byte* memory) {
                           context.device->use();
                           Launch launch(context, ports, products, mode, memory + all_space);
                           launch.add_workspaces(streams, memory, space);
                           if (p.in_place) {
                             launch.copy_addends(context.device->stream());
                           }
                           return context.device->timed([&] {
                             const MatmulCalls noting(*calls);
                             multiply(context, p, launch.lists, split);
                           });
                         }};
  std::vector<bool> multiplied;
  std::ranges::transform(products, std::back_inserter(multiplied), has_outputs);
  algorithm.shown = [calls, multiplied] { return shown_by(*calls, multiplied); };
  add_product_options(products.front(), algorithm);
  return algorithm;
}

}  // namespace

// Each group is a product as nvte_cublas_gemm_v2 computes it, on one of the library's streams; with
// NVTE_USE_CUTLASS_GROUPED_GEMM=1, on Hopper, BF16 and FP16 groups whose k is one multiple of 128 run in one CUTLASS
// kernel. Row-major as in `gemm`. Groups without outputs are left out of the list, as the library's frameworks do.
// Source: TransformerEngine common/gemm/cublaslt_gemm.cu, nvte_multi_tensor_gemm.
const Binding& grouped_gemm() {
  static const TeBinding binding{
      {"transformer_engine", "grouped_gemm", kArithmetic}, &grouped_obstacle, &grouped_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
