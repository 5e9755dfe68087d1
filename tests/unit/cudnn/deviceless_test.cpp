// Graphs of the normalisations for devices that this machine lacks: the library says which of its engines accept them.
// This needs neither GPU nor driver; plans get as far as the compiled kernel, which only a driver could load.
#include "deviceless.hpp"

#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "kernels/cudnn/engines.hpp"
#include "kernels/cudnn/norm_graph.hpp"
#include "op/layernorm_bwd.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/rmsnorm_bwd.hpp"
#include "op/rmsnorm_fwd.hpp"

namespace numcheck::kernels::cudnn {
namespace {

/// A case with its parts.
struct Problem {
  plan::Case c;
  std::vector<op::Port> ports;
  std::string name;

  [[nodiscard]] Call call() const { return {&c, ports, ""}; }
};

template <class Params>
Problem problem(const op::Op& op, Params params, std::string_view mode, const op::NormParams& common) {
  static_cast<op::NormParams&>(params) = common;
  Problem made;
  made.c.op = &op;
  made.c.params = op::to_params(params);
  made.c.mode = op::find_mode(mode);
  made.ports = op.ports(made.c.params, *made.c.mode);
  made.c.backend = "cudnn";
  plan::identify(made.c);
  made.name = made.c.id;
  return made;
}

/// The four ops with these parameters.
std::vector<Problem> problems(std::string_view mode, const op::NormParams& common) {
  return {problem(op::layernorm_fwd(), op::LayernormFwdParams(), mode, common),
          problem(op::layernorm_bwd(), op::LayernormBwdParams(), mode, common),
          problem(op::rmsnorm_fwd(), op::RmsnormFwdParams(), mode, common),
          problem(op::rmsnorm_bwd(), op::RmsnormBwdParams(), mode, common)};
}

op::NormParams shape(std::int64_t rows, std::int64_t hidden) {
  op::NormParams p;
  p.rows = rows;
  p.hidden = hidden;
  return p;
}

class CudnnDeviceless : public test::Deviceless {
 protected:
  [[nodiscard]] static std::shared_ptr<Graph> graph_of(const Problem& p) {
    std::shared_ptr<Graph> graph = norm_graph(library(), p.call());
    graph->finalize(nullptr);
    return graph;
  }

  /// True if an engine accepts the graph.
  void expect_engine(const Problem& p) const {
    ASSERT_EQ(norm_obstacle(p.call()), "") << p.name;
    const std::shared_ptr<Graph> graph = graph_of(p);
    const Candidates offered = candidates(*graph, target(), HeuristicsMode::a);
    EXPECT_FALSE(offered.list.empty()) << p.name << ": " << offered.refusal;
  }

  /// The first engine's plan finalises, or fails where a driver would load the compiled kernel.
  void expect_plan(const Problem& p) const {
    const std::shared_ptr<Graph> graph = graph_of(p);
    const Candidates offered = candidates(*graph, target(), HeuristicsMode::a);
    ASSERT_FALSE(offered.list.empty()) << p.name << ": " << offered.refusal;
    try {
      const Descriptor plan = make_plan(*graph, target(), offered.list.front());
      EXPECT_GE(plan.value<std::int64_t>(Attribute::plan_workspace_bytes), 0) << p.name;
    } catch (const CudnnError& error) {
      EXPECT_EQ(error.status(), kDriverFailed) << p.name << ": " << error.what();
    }
  }
};

TEST_P(CudnnDeviceless, every_norm_has_an_engine) {
  for (const char* mode : {"fp32", "bf16", "fp16"}) {
    for (const op::NormParams& common : {shape(71, 229), shape(768, 6144), shape(1, 1), shape(5040, 1280)}) {
      for (const Problem& p : problems(mode, common)) {
        expect_engine(p);
      }
    }
  }
}

TEST_P(CudnnDeviceless, one_is_added_to_gamma_in_the_graph) {
  for (const char* mode : {"fp32", "bf16", "fp16"}) {
    for (const char* add : {"fp32", "weight"}) {
      op::NormParams common = shape(64, 1024);
      common.zero_centered_gamma = true;
      common.gamma_add = add;
      for (const Problem& p : problems(mode, common)) {
        expect_engine(p);
      }
    }
  }
}

TEST_P(CudnnDeviceless, narrow_outputs_of_fp32) {
  op::LayernormFwdParams narrow;
  narrow.output = "bf16";
  expect_engine(problem(op::layernorm_fwd(), narrow, "fp32", shape(64, 1024)));
}

TEST_P(CudnnDeviceless, plans_come_as_far_as_the_kernel) {
  for (const Problem& p : problems("bf16", shape(64, 1024))) {
    expect_plan(p);
  }
}

TEST_P(CudnnDeviceless, a_graph_that_no_engine_takes_has_a_reason) {
  // The gradient of x would have to be BF16 before the residual one is added, and rounded twice.
  op::RmsnormBwdParams residual;
  residual.add = true;
  const Problem p = problem(op::rmsnorm_bwd(), residual, "bf16", shape(64, 1024));
  const plan::Case& c = *p.call().c;
  const auto graph = std::make_shared<Graph>(library());
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  const auto port = [&](std::string_view name) { return &graph->port(op::port_named(ports, name)); };
  const Descriptor& dx = graph->intermediate(core::Dtype::fp32, 64, 1024);
  graph->norm_backward({.mode = NormMode::rms,
                        .dy = port("dz"),
                        .x = port("x"),
                        .scale = port("gamma"),
                        .mean = nullptr,
                        .inverse_deviation = port("rsigma"),
                        .dx = &dx,
                        .dscale = port("dgamma"),
                        .dbias = nullptr});
  graph->add(dx, *port("add"), *port("dx"));
  graph->finalize(nullptr);
  const Candidates offered = candidates(*graph, target(), HeuristicsMode::a);
  if (library().get_version() < 92100) {
    EXPECT_TRUE(offered.list.empty());
    EXPECT_NE(offered.refusal.find("CUDNN_STATUS_NOT_SUPPORTED"), std::string::npos) << offered.refusal;
    EXPECT_NE(make_plans(*graph, target(), 1).refusal, "");
  }
}

TEST_P(CudnnDeviceless, engines_are_described) {
  const std::shared_ptr<Graph> graph =
      graph_of(problem(op::layernorm_fwd(), op::LayernormFwdParams(), "bf16", shape(64, 1024)));
  const Candidates offered = candidates(*graph, target(), HeuristicsMode::a);
  ASSERT_FALSE(offered.list.empty());
  const EngineText text = describe(offered.list.front());
  ASSERT_EQ(text.details.size(), 5U);
  EXPECT_EQ(text.label, "cudnn engine " + text.details[0].second);
  EXPECT_EQ(text.details[1].first, "knobs");
  EXPECT_EQ(text.details[3].first, "behavior");
  EXPECT_NE(text.details[3].second, "unknown");
  EXPECT_NE(text.details[2].second, "unknown");
  EXPECT_EQ(text.details[4].second, "A");
}

TEST_P(CudnnDeviceless, launches_get_every_tensor_and_pass_scalars_by_value) {
  op::NormParams common = shape(64, 1024);
  common.zero_centered_gamma = true;
  const Problem p = problem(op::layernorm_fwd(), op::LayernormFwdParams(), "bf16", common);
  const std::shared_ptr<Graph> graph = graph_of(p);
  std::byte memory{};
  std::vector<PortMemory> ports;
  for (const op::Port& port : p.ports) {
    ports.push_back({&port, &memory});
  }
  EXPECT_NE(graph->variant_pack(ports, &memory).get(), nullptr);
  ports.pop_back();
  EXPECT_THROW(static_cast<void>(graph->variant_pack(ports, &memory)), core::InternalError);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudnnDeviceless, ::testing::Values(80, 90),
                         [](const auto& parameter) { return "sm_" + std::to_string(parameter.param); });

}  // namespace
}  // namespace numcheck::kernels::cudnn
