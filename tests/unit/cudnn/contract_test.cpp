// configs/contracts/sm_80.json: what it promises of backends that refuse cases, as far as they can be asked without a GPU.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "attention_question.hpp"
#include "deviceless.hpp"
#include "kernels/cublaslt/gemm.hpp"
#include "kernels/cublaslt/grouped_gemm.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cudnn/norm_graph.hpp"
#include "prepare/catalog.hpp"
#include "tests/unit/app/shipped_contract.hpp"

namespace numcheck::kernels::cudnn {
namespace {

constexpr std::size_t kCublasLt = 130100;

/// The binding that computes the case on a GPU.
const Binding& binding_of(const plan::Case& c) {
  const prepare::CatalogRow* row = prepare::find_row(app::catalog(), c.op->name);
  const std::string backend = c.backend == "auto" ? std::string(row->backends.front().name) : c.backend;
  return *find_binding(app::bindings(), backend, c.op->name);
}

std::string obstacle_on_sm_80(const Call& call) {
  const Binding& binding = binding_of(*call.c);
  if (binding.backend == "cublaslt") {
    const auto obstacle = call.c->op->name == "grouped_gemm" ? &cublaslt::grouped_obstacle : &cublaslt::gemm_obstacle;
    return obstacle(call, 80, kCublasLt);
  }
  if (binding.backend == "cuda") {
    return static_cast<const cuda::CudaBinding&>(binding).obstacle(call);
  }
  return binding.backend == "cudnn" ? static_cast<const CudnnBinding&>(binding).obstacle(call) : std::string();
}

TEST(ContractOfSm80, promises_nothing_that_a_backend_refuses_by_itself) {
  for (const report::PlanPromises& promises : app::test::shipped_contract("sm_80").plans) {
    for (const plan::Case& c : app::test::promised_cases(promises)) {
      const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
      EXPECT_EQ(obstacle_on_sm_80({&c, ports, ""}), "") << c.id;
    }
  }
}

class ContractDeviceless : public test::Deviceless {
 protected:
  /// What cuDNN says if it has no engine for a norm; empty if it has one.
  [[nodiscard]] std::string norm_refusal(const test::Problem& p) const {
    const std::shared_ptr<Graph> graph = norm_graph(library(), p.call());
    graph->finalize(nullptr);
    const Candidates offered = candidates(*graph, target(), HeuristicsMode::a);
    return offered.list.empty() ? "no engine: " + offered.refusal : "";
  }

  [[nodiscard]] std::string attention_refusal(const test::Problem& p) const {
    const numcheck::test::Reply reply = test::ask(library(), target(), p);
    return reply.accepted ? "" : "no engine: " + reply.words;
  }
};

TEST_P(ContractDeviceless, cudnn_offers_engines_for_what_is_promised_of_it) {
  std::size_t asked = 0;
  for (const report::PlanPromises& promises : app::test::shipped_contract("sm_80").plans) {
    for (const plan::Case& c : app::test::promised_cases(promises)) {
      if (c.backend != "cudnn" || c.op->name.starts_with("softmax")) {
        continue;
      }
      const test::Problem p{c, c.op->ports(c.params, *c.mode)};
      const bool attention = c.op->name.starts_with("attention");
      EXPECT_EQ(attention ? attention_refusal(p) : norm_refusal(p), "") << c.id;
      ++asked;
    }
  }
  EXPECT_GT(asked, 200U);
}

INSTANTIATE_TEST_SUITE_P(Architecture, ContractDeviceless, ::testing::Values(80),
                         [](const auto& parameter) { return "sm_" + std::to_string(parameter.param); });

}  // namespace
}  // namespace numcheck::kernels::cudnn
