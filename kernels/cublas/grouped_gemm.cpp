#include "op/grouped_gemm.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/contract/group_ports.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/cublas/binding.hpp"
#include "kernels/cublas/bindings.hpp"
#include "kernels/cublas_support/types.hpp"
#include "kernels/cuda_support/addend.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cublas {
namespace {

constexpr std::array<std::string_view, 5> kModes = {"fp32", "fp32_pedantic", "tf32", "bf16", "fp16"};

std::string obstacle(const Call& call) {
  const auto p = op::from_params<op::GroupedGemmParams>(call.c->params);
  const op::Mode& mode = *call.c->mode;
  if (std::ranges::find(kModes, mode.name) == kModes.end()) {
    return fmt::format("cublasGemmGroupedBatchedEx multiplies FP32, BF16 and FP16 matrices, not those of the mode {}{}",
                       mode.name,
                       mode.scaled ? "; cuda, cublaslt and transformer_engine multiply operands with scales" : "");
  }
  if (const core::Dtype output = op::port_named(call.ports, "d0").dtype; output != mode.output) {
    return fmt::format("cublasGemmGroupedBatchedEx has no {} output of {} matrices: set output to default",
                       core::dtype_info(output).name, core::dtype_info(mode.first).name);
  }
  if (p.bias || p.epilogue != "none") {
    return "cublasGemmGroupedBatchedEx has no bias and no epilogue: leave bias out and set epilogue to none";
  }
  if (p.beta != 0 && !p.in_place) {
    return "cublasGemmGroupedBatchedEx accumulates into D in place: set in_place to true";
  }
  return {};
}

/// The products as the library sees them: column-major, so that the first operand is our B.
struct Problem {
  std::vector<cublasOperation_t> first_op, second_op;
  std::vector<int> m, n, k, first_ld, second_ld, ld;
  std::vector<float> alpha, beta;
  cudaDataType_t type = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  bool in_place = false;

  [[nodiscard]] int groups() const { return static_cast<int>(m.size()); }
};

int leading_dimension(std::int64_t columns) {
  return static_cast<int>(std::max<std::int64_t>(1, columns));
}

Problem problem_of(const Call& call) {
  const auto p = op::from_params<op::GroupedGemmParams>(call.c->params);
  Problem problem;
  problem.type = cublas_support::cuda_type(call.c->mode->first);
  problem.compute = cublas_support::compute_type(call.c->mode->compute);
  problem.in_place = p.in_place;
  for (const op::GemmParams& product : op::products_of(p)) {
    problem.first_op.push_back(product.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    problem.second_op.push_back(product.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    problem.m.push_back(static_cast<int>(product.n));
    problem.n.push_back(static_cast<int>(product.m));
    problem.k.push_back(static_cast<int>(product.k));
    problem.first_ld.push_back(leading_dimension(product.trans_b ? product.k : product.n));
    problem.second_ld.push_back(leading_dimension(product.trans_a ? product.m : product.k));
    problem.ld.push_back(leading_dimension(product.n));
    problem.alpha.push_back(static_cast<float>(product.alpha));
    problem.beta.push_back(static_cast<float>(product.beta));
  }
  return problem;
}

/// Addresses of all matrices: of our B, of our A, of D.
struct Addresses {
  std::vector<void*> first, second, d;

  explicit Addresses(const std::vector<GroupPorts>& groups) {
    for (const GroupPorts& group : groups) {
      first.push_back(first_element(&port_memory(group.memory(), "b")));
      second.push_back(first_element(&port_memory(group.memory(), "a")));
      d.push_back(first_element(&port_memory(group.memory(), "d")));
    }
  }
};

/// Copies addresses to device memory, where the library reads them.
void** copy_addresses(const std::vector<void*>& addresses, std::byte*& to, cudaStream_t stream) {
  const std::size_t bytes = addresses.size() * sizeof(void*);
  auto** copy = reinterpret_cast<void**>(to);
  cuda_support::check(cudaMemcpyAsync(copy, addresses.data(), bytes, cudaMemcpyHostToDevice, stream),
                      "cudaMemcpyAsync");
  to += bytes;
  return copy;
}

DeviceSeconds run_grouped(const Cublas& cublas, cuda_support::CudaDevice& device, const Problem& p,
                          const Addresses& addresses, std::byte* workspace) {
  cudaStream_t stream = device.stream();
  void** first = copy_addresses(addresses.first, workspace, stream);
  void** second = copy_addresses(addresses.second, workspace, stream);
  void** d = copy_addresses(addresses.d, workspace, stream);
  const std::vector<int> one_each(p.m.size(), 1);
  return device.timed([&] {
    cuda_support::check(
        cublas.gemm_grouped(cublas.handle(), p.first_op.data(), p.second_op.data(), p.m.data(), p.n.data(), p.k.data(),
                            p.alpha.data(), first, p.type, p.first_ld.data(), second, p.type, p.second_ld.data(),
                            p.beta.data(), d, p.type, p.ld.data(), p.groups(), one_each.data(), p.compute),
        "cublasGemmGroupedBatchedEx");
  });
}

DeviceSeconds run_one_by_one(const Cublas& cublas, cuda_support::CudaDevice& device, const Problem& p,
                             const Addresses& addresses) {
  return device.timed([&] {
    for (std::size_t i = 0; i < p.m.size(); ++i) {
      if (p.m[i] != 0 && p.n[i] != 0) {
        cuda_support::check(
            cublas.gemm(cublas.handle(), p.first_op[i], p.second_op[i], p.m[i], p.n[i], p.k[i], &p.alpha[i],
                        addresses.first[i], p.type, p.first_ld[i], addresses.second[i], p.type, p.second_ld[i],
                        &p.beta[i], addresses.d[i], p.type, p.ld[i], p.compute, CUBLAS_GEMM_DEFAULT),
            "cublasGemmEx");
      }
    }
  });
}

Algorithm algorithm(const Cublas& cublas, cuda_support::CudaDevice& device, const Call& call, bool grouped) {
  const std::string function = grouped ? "cublasGemmGroupedBatchedEx" : "cublasGemmEx";
  Algorithm a;
  a.label = grouped ? function : function + " for each group";
  a.details = {{"function", function}, {"cublas", cublas.version()}};
  const auto problem = std::make_shared<const Problem>(problem_of(call));
  if (problem->in_place) {
    a.details.emplace_back("addend", "in place");
    a.rounding.in_place = true;
  }
  a.workspace_bytes = grouped ? 3 * problem->m.size() * sizeof(void*) : 0;
  a.launch = [&cublas, &device, problem, grouped](std::span<const PortMemory> ports, std::byte* workspace) {
    device.use();
    const std::vector<GroupPorts> groups = groups_of(ports, problem->m.size());
    for (const GroupPorts& group : problem->in_place ? std::span(groups) : std::span<const GroupPorts>()) {
      cuda_support::copy_addend(group.memory(), device.stream());
    }
    cuda_support::check(cublas.set_stream(cublas.handle(), device.stream()), "cublasSetStream_v2");
    return grouped ? run_grouped(cublas, device, *problem, Addresses(groups), workspace)
                   : run_one_by_one(cublas, device, *problem, Addresses(groups));
  };
  return a;
}

/// One by one only where more than the first algorithm is wanted.
std::vector<Algorithm> algorithms(const Cublas& cublas, cuda_support::CudaDevice& device, const Call& call) {
  using Kind = plan::AlgorithmSpec::Kind;
  const plan::AlgorithmSpec& spec = call.c->algorithms;
  std::vector<Algorithm> found;
  found.push_back(algorithm(cublas, device, call, true));
  if (spec.kind == Kind::all || (spec.kind == Kind::top && spec.top > 1)) {
    found.push_back(algorithm(cublas, device, call, false));
  }
  return found;
}

}  // namespace

const Binding& grouped_gemm() {
  static const CublasBinding binding{{"cublas", "grouped_gemm", kArithmetic}, &obstacle, &algorithms};
  return binding;
}

}  // namespace numcheck::kernels::cublas
