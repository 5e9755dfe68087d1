#include "kernels/cublaslt/grouped_gemm.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "kernels/contract/device_block.hpp"
#include "kernels/contract/group_ports.hpp"
#include "kernels/cublas_support/algorithm_text.hpp"
#include "kernels/cublaslt/gemm.hpp"
#include "kernels/cublaslt/problem.hpp"
#include "kernels/cuda_support/addend.hpp"
#include "kernels/cuda_support/check.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::kernels::cublaslt {
namespace {

/// A group as a case of `gemm`, which it would be without the others.
struct GroupCase {
  plan::Case c;
  std::vector<op::Port> ports;
  bool has_output = false;

  [[nodiscard]] Call call() const { return {.c = &c, .ports = ports, .inject = {}}; }
};

std::vector<GroupCase> cases_of(const Call& call) {
  std::vector<GroupCase> cases;
  for (const op::GemmParams& product : op::products_of(op::from_params<op::GroupedGemmParams>(call.c->params))) {
    GroupCase& added = cases.emplace_back();
    added.c.op = &op::gemm();
    added.c.params = op::to_params(product);
    added.c.mode = call.c->mode;
    added.ports = op::ports_of_group(call.ports, cases.size() - 1);
    added.has_output = product.m != 0 && product.n != 0;
  }
  return cases;
}

/// A group's product and the algorithm that the library would choose.
struct Product {
  Product(const cublas_support::CublasLt& lt, const GroupCase& group, const std::byte* scratch)
      : problem(lt, group.call(), scratch), candidates(problem.heuristic(1, kWorkspaceLimit)) {}

  LtProblem problem;
  LtProblem::Candidates candidates;
};

/// One for each group; null for those without outputs.
using Products = std::vector<std::unique_ptr<Product>>;

Products products_of_case(const cublas_support::CublasLt& lt, cuda_support::CudaDevice& device, const Call& call) {
  device.use();
  const DeviceBlock scratch = allocate_block(device.memory(), kScratchBytes);
  Products products;
  for (const GroupCase& group : cases_of(call)) {
    products.push_back(group.has_output ? std::make_unique<Product>(lt, group, scratch.get()) : nullptr);
  }
  return products;
}

void enqueue_all(const Products& products, std::span<const GroupPorts> groups, std::byte* workspace,
                 cudaStream_t stream) {
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (products[i] != nullptr) {
      const cublasLtMatmulHeuristicResult_t& chosen = products[i]->candidates.results.front();
      products[i]->problem.enqueue(groups[i].memory(), chosen.algo, workspace, chosen.workspaceSize, stream);
    }
  }
}

}  // namespace

std::string grouped_obstacle(const Call& call, int sm, std::size_t library_version) {
  const std::vector<GroupCase> cases = cases_of(call);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::string obstacle = gemm_obstacle(cases[i].call(), sm, library_version);
    if (!obstacle.empty()) {
      return fmt::format("group {}: {}", i, obstacle);
    }
  }
  return {};
}

Support grouped_support(const cublas_support::CublasLt& lt, cuda_support::CudaDevice& device, const Call& call) {
  const Products products = products_of_case(lt, device, call);
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (products[i] != nullptr && products[i]->candidates.results.empty()) {
      return {false,
              fmt::format("cuBLASLt {} offers no algorithm for the product of group {} on sm_{} ({})", lt.version(), i,
                          device.info().sm, cuda_support::cublas_status_name(products[i]->candidates.status))};
    }
  }
  return {};
}

std::vector<Algorithm> grouped_algorithms(const cublas_support::CublasLt& lt, cuda_support::CudaDevice& device,
                                          const Call& call) {
  const auto products = std::make_shared<const Products>(products_of_case(lt, device, call));
  const op::GemmParams common = op::products_of(op::from_params<op::GroupedGemmParams>(call.c->params)).front();
  std::vector<cublas_support::AlgorithmText> texts;
  cublas_support::AlgorithmText all;  // of all groups
  std::size_t workspace_bytes = 0;
  for (const std::unique_ptr<Product>& product : *products) {
    int& slices = all.rounding.group_slices.emplace_back(1);
    if (product != nullptr) {
      const cublasLtMatmulHeuristicResult_t& chosen = product->candidates.results.front();
      texts.push_back(cublas_support::describe_algorithm(cublas_support::reader_of(lt), chosen.algo));
      slices = texts.back().rounding.slices;
      all.rounding.slices = std::max(all.rounding.slices, slices);
      workspace_bytes = std::max(workspace_bytes, chosen.workspaceSize);
    }
  }
  all.label = "cublasLtMatmul for each group";
  all.details = {{"function", "cublasLtMatmul"}, {"cublaslt", cublas_support::labels_of(texts)}};
  add_product_options(common, all);
  Algorithm algorithm{std::move(all.label), std::move(all.details), workspace_bytes, {}, all.rounding};
  algorithm.launch = [products, &device, in_place = common.in_place](std::span<const PortMemory> ports,
                                                                     std::byte* workspace) {
    device.use();
    const std::vector<GroupPorts> groups = groups_of(ports, products->size());
    for (const GroupPorts& group : in_place ? std::span(groups) : std::span<const GroupPorts>()) {
      cuda_support::copy_addend(group.memory(), device.stream());
    }
    return device.timed([&] { enqueue_all(*products, groups, workspace, device.stream()); });
  };
  return {std::move(algorithm)};
}

}  // namespace numcheck::kernels::cublaslt
