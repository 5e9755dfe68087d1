#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"
#include "op/layernorm_bwd.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/rmsnorm_bwd.hpp"
#include "op/rmsnorm_fwd.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

template <class Params>
std::string obstacle(const Context& context, const Call& call, std::string_view function) {
  if (std::string layout = layout_obstacle(call); !layout.empty()) {
    return layout;
  }
  const auto p = op::from_params<Params>(call.c->params);
  if constexpr (requires { p.gamma_order; }) {
    if (p.gamma_order != "te") {
      return "TransformerEngine applies gamma in FP32 before it rounds: set gamma_order to te";
    }
  }
  if (p.gamma_add == "weight") {
    return "TransformerEngine's own kernels add 1 to gamma in FP32; the backend cudnn adds it in the weight's format";
  }
  return context.library.lacks({function});
}

/// Rows and columns of x and of everything that has its shape.
template <class Params>
struct Norm {
  explicit Norm(const Call& call) : p(op::from_params<Params>(call.c->params)) {}

  Handle matrix(Operands& operands, std::string_view name) const {
    return operands.input(name, {p.rows, p.hidden}).handle();
  }
  Handle weight(Operands& operands, std::string_view name) const { return operands.input(name, {p.hidden}).handle(); }
  Handle statistic(Operands& operands, std::string_view name) const { return operands.input(name, {p.rows}).handle(); }

  Params p;
};

Algorithm layernorm_fwd_algorithm(const Context& context, const Call& call) {
  return two_calls(context, call, kLayernormFwd.name, [norm = Norm<op::LayernormFwdParams>(call)](Operands& o) {
    Handle x = norm.matrix(o, "x"), gamma = norm.weight(o, "gamma"), beta = norm.weight(o, "beta");
    Handle y = o.output("y", {norm.p.rows, norm.p.hidden}).handle();
    Handle mu = norm.statistic(o, "mu"), rsigma = norm.statistic(o, "rsigma");
    return Enqueue([=, &o](Handle workspace) {
      o.context().library.call(kLayernormFwd, x, gamma, beta, static_cast<float>(norm.p.epsilon), y, mu, rsigma,
                               workspace, o.context().info.multiprocessors, norm.p.zero_centered_gamma, o.stream());
    });
  });
}

Algorithm layernorm_bwd_algorithm(const Context& context, const Call& call) {
  return two_calls(context, call, kLayernormBwd.name, [norm = Norm<op::LayernormBwdParams>(call)](Operands& o) {
    Handle dz = norm.matrix(o, "dz"), x = norm.matrix(o, "x"), gamma = norm.weight(o, "gamma");
    Handle mu = norm.statistic(o, "mu"), rsigma = norm.statistic(o, "rsigma");
    Handle dx = norm.matrix(o, "dx"), dgamma = norm.weight(o, "dgamma"), dbeta = norm.weight(o, "dbeta");
    return Enqueue([=, &o](Handle workspace) {
      o.context().library.call(kLayernormBwd, dz, x, mu, rsigma, gamma, dx, dgamma, dbeta, workspace,
                               o.context().info.multiprocessors, norm.p.zero_centered_gamma, o.stream());
    });
  });
}

Algorithm rmsnorm_fwd_algorithm(const Context& context, const Call& call) {
  return two_calls(context, call, kRmsnormFwd.name, [norm = Norm<op::RmsnormFwdParams>(call)](Operands& o) {
    Handle x = norm.matrix(o, "x"), gamma = norm.weight(o, "gamma");
    Handle y = o.output("y", {norm.p.rows, norm.p.hidden}).handle(), rsigma = norm.statistic(o, "rsigma");
    return Enqueue([=, &o](Handle workspace) {
      o.context().library.call(kRmsnormFwd, x, gamma, static_cast<float>(norm.p.epsilon), y, rsigma, workspace,
                               o.context().info.multiprocessors, norm.p.zero_centered_gamma, o.stream());
    });
  });
}

Algorithm rmsnorm_bwd_algorithm(const Context& context, const Call& call) {
  const Norm<op::RmsnormBwdParams> norm(call);
  const std::string_view function = norm.p.add ? kRmsnormBwdAdd.name : kRmsnormBwd.name;
  return two_calls(context, call, function, [norm](Operands& o) {
    Handle dz = norm.matrix(o, "dz"), x = norm.matrix(o, "x"), gamma = norm.weight(o, "gamma");
    Handle add = norm.p.add ? norm.matrix(o, "add") : nullptr, rsigma = norm.statistic(o, "rsigma");
    Handle dx = norm.matrix(o, "dx"), dgamma = norm.weight(o, "dgamma");
    return Enqueue([=, &o](Handle workspace) {
      const int multiprocessors = o.context().info.multiprocessors;
      if (norm.p.add) {
        o.context().library.call(kRmsnormBwdAdd, dz, x, add, rsigma, gamma, dx, dgamma, workspace, multiprocessors,
                                 norm.p.zero_centered_gamma, o.stream());
      } else {
        o.context().library.call(kRmsnormBwd, dz, x, rsigma, gamma, dx, dgamma, workspace, multiprocessors,
                                 norm.p.zero_centered_gamma, o.stream());
      }
    });
  });
}

}  // namespace

// nvte_layernorm_fwd, nvte_layernorm_bwd, nvte_rmsnorm_fwd, nvte_rmsnorm_bwd and nvte_rmsnorm_bwd_add. They add 1 to a
// zero-centred gamma in FP32. NVTE_NORM_FWD_USE_CUDNN and NVTE_NORM_BWD_USE_CUDNN are left to the user.
const Binding& layernorm_fwd() {
  static const TeBinding binding{{"transformer_engine", "layernorm_fwd"},
                                 [](const Context& context, const Call& call) {
                                   return obstacle<op::LayernormFwdParams>(context, call, kLayernormFwd.name);
                                 },
                                 &layernorm_fwd_algorithm};
  return binding;
}

const Binding& layernorm_bwd() {
  static const TeBinding binding{{"transformer_engine", "layernorm_bwd"},
                                 [](const Context& context, const Call& call) {
                                   return obstacle<op::LayernormBwdParams>(context, call, kLayernormBwd.name);
                                 },
                                 &layernorm_bwd_algorithm};
  return binding;
}

const Binding& rmsnorm_fwd() {
  static const TeBinding binding{{"transformer_engine", "rmsnorm_fwd"},
                                 [](const Context& context, const Call& call) {
                                   return obstacle<op::RmsnormFwdParams>(context, call, kRmsnormFwd.name);
                                 },
                                 &rmsnorm_fwd_algorithm};
  return binding;
}

const Binding& rmsnorm_bwd() {
  static const TeBinding binding{{"transformer_engine", "rmsnorm_bwd"},
                                 [](const Context& context, const Call& call) {
                                   const bool add = op::from_params<op::RmsnormBwdParams>(call.c->params).add;
                                   return obstacle<op::RmsnormBwdParams>(context, call,
                                                                         add ? kRmsnormBwdAdd.name : kRmsnormBwd.name);
                                 },
                                 &rmsnorm_bwd_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
