#include "kernels/cudnn/norm_graph.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/cudnn/operands.hpp"
#include "op/layernorm_bwd.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/rmsnorm_bwd.hpp"
#include "op/rmsnorm_fwd.hpp"

namespace numcheck::kernels::cudnn {
namespace {

const Descriptor* port(Graph& graph, const Call& call, std::string_view name) {
  return &graph.port(op::port_named(call.ports, name));
}

/// gamma' of op::NormParams.
const Descriptor* gamma_factor(Graph& graph, const Call& call, const op::NormParams& p) {
  const op::Port& stored = op::port_named(call.ports, "gamma");
  const Descriptor& gamma = graph.port(stored);
  if (!p.zero_centered_gamma) {
    return &gamma;
  }
  const core::Dtype format = p.gamma_add == "weight" ? stored.dtype : core::Dtype::fp32;
  const Descriptor& sum = graph.intermediate(format, stored.rows, stored.cols);
  graph.add(gamma, graph.scalar(format, 1), sum);
  return &sum;
}

void build_layernorm_fwd(Graph& graph, const Call& call) {
  const auto p = op::from_params<op::LayernormFwdParams>(call.c->params);
  graph.norm_forward({.mode = NormMode::layer,
                      .x = port(graph, call, "x"),
                      .scale = gamma_factor(graph, call, p),
                      .bias = port(graph, call, "beta"),
                      .epsilon = &graph.scalar(core::Dtype::fp32, p.epsilon),
                      .y = port(graph, call, "y"),
                      .mean = port(graph, call, "mu"),
                      .inverse_deviation = port(graph, call, "rsigma")});
}

void build_rmsnorm_fwd(Graph& graph, const Call& call) {
  const auto p = op::from_params<op::RmsnormFwdParams>(call.c->params);
  graph.norm_forward({.mode = NormMode::rms,
                      .x = port(graph, call, "x"),
                      .scale = gamma_factor(graph, call, p),
                      .bias = nullptr,
                      .epsilon = &graph.scalar(core::Dtype::fp32, p.epsilon),
                      .y = port(graph, call, "y"),
                      .mean = nullptr,
                      .inverse_deviation = port(graph, call, "rsigma")});
}

void build_layernorm_bwd(Graph& graph, const Call& call) {
  const auto p = op::from_params<op::LayernormBwdParams>(call.c->params);
  graph.norm_backward({.mode = NormMode::layer,
                       .dy = port(graph, call, "dz"),
                       .x = port(graph, call, "x"),
                       .scale = gamma_factor(graph, call, p),
                       .mean = port(graph, call, "mu"),
                       .inverse_deviation = port(graph, call, "rsigma"),
                       .dx = port(graph, call, "dx"),
                       .dscale = port(graph, call, "dgamma"),
                       .dbias = port(graph, call, "dbeta")});
}

void build_rmsnorm_bwd(Graph& graph, const Call& call) {
  const auto p = op::from_params<op::RmsnormBwdParams>(call.c->params);
  graph.norm_backward({.mode = NormMode::rms,
                       .dy = port(graph, call, "dz"),
                       .x = port(graph, call, "x"),
                       .scale = gamma_factor(graph, call, p),
                       .mean = nullptr,
                       .inverse_deviation = port(graph, call, "rsigma"),
                       .dx = port(graph, call, "dx"),
                       .dscale = port(graph, call, "dgamma"),
                       .dbias = nullptr});
}

}  // namespace

std::string norm_obstacle(const Call& call) {
  if (call.c->op == &op::rmsnorm_fwd() && op::from_params<op::RmsnormFwdParams>(call.c->params).gamma_order != "te") {
    return "cuDNN applies gamma in FP32 before it rounds: set gamma_order to te";
  }
  if (call.c->op == &op::rmsnorm_bwd() && op::from_params<op::RmsnormBwdParams>(call.c->params).add) {
    // Measured with 9.14.0 and 9.19.0 on an H200: CUDNN_STATUS_BAD_PARAM_NULL_POINTER (nullptr == bwdParams.dx).
    return "cuDNN's engines accept the graph with a residual gradient but do not run it: they need dx in memory before "
           "the addition";
  }
  return port_obstacle(call);
}

std::shared_ptr<Graph> norm_graph(const Library& library, const Call& call) {
  auto graph = std::make_shared<Graph>(library);
  if (call.c->op == &op::layernorm_fwd()) {
    build_layernorm_fwd(*graph, call);
  } else if (call.c->op == &op::layernorm_bwd()) {
    build_layernorm_bwd(*graph, call);
  } else if (call.c->op == &op::rmsnorm_fwd()) {
    build_rmsnorm_fwd(*graph, call);
  } else if (call.c->op == &op::rmsnorm_bwd()) {
    build_rmsnorm_bwd(*graph, call);
  } else {
    throw core::InternalError(fmt::format("cuDNN binding: {} is not a normalisation", call.c->op->name));
  }
  return graph;
}

}  // namespace numcheck::kernels::cudnn
