#include "op/layernorm_fwd.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "core/parallel.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/norm_rows.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::array kOwnFaults = {
    OpFault{{"one_pass_variance", "the variance is mean(x^2) - mu^2"},
            [](const Call& call) {
              const auto p = op::from_params<op::LayernormFwdParams>(call.c->params);
              return std::string(p.rows < 1 ? "there are no rows" : "");
            }},
    OpFault{{"beta_missing", "beta is not added"}},
    OpFault{
        {"lone_deviation", "rows of one element have no deviation, even of infinities and NaN"},
        [](const Call& call) {
          const auto p = op::from_params<op::LayernormFwdParams>(call.c->params);
          return std::string(p.hidden > 1 ? "a row has more than one element" : p.rows < 1 ? "there are no rows" : "");
        }},
};

const std::vector<OpFault>& faults() {
  static const std::vector<OpFault> all = with_own_faults(norm_forward_faults(), kOwnFaults);
  return all;
}

void run(const op::LayernormFwdParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> x = read_kept(ports, "x", fault);
  const std::vector<float> factors = norm_factors(ports, p, fault);
  std::vector<float> beta = read_kept(ports, "beta", fault);
  if (fault == "beta_missing") {
    beta.assign(beta.size(), 0.0F);
  }
  const std::vector<RowStatistics> rows = all_row_statistics(x, p, true, fault);
  const auto hidden = static_cast<std::size_t>(p.hidden);
  std::vector<float> y(x.size());
  std::vector<float> mu(rows.size());
  std::vector<float> rsigma(rows.size());
  core::parallel_for(rows.size(), [&](std::size_t i) {
    const RowStatistics& row = rows[statistics_row(i, fault)];
    mu[i] = rows[i].mu;
    rsigma[i] = rows[i].rsigma;
    for (std::size_t j = 0; j < hidden; ++j) {
      const float normalised = kept((x[i * hidden + j] - row.mu) * row.rsigma, fault);
      y[i * hidden + j] = normalised * factors[j] + beta[j];
    }
    if (fault == "lone_deviation" && hidden == 1) {
      rsigma[i] = 1.0F / std::sqrt(static_cast<float>(p.epsilon));
    }
  });
  write_kept(ports, "y", y, fault);
  write_kept(ports, "mu", mu, fault);
  write_kept(ports, "rsigma", rsigma, fault);
}

}  // namespace

const Binding& layernorm_fwd() {
  static const std::vector<FaultInfo> infos = with_store_faults(faults());
  static const SimBinding binding{
      {"sim", "layernorm_fwd"},
      [](const Call&, const SimContext&) { return std::string(); },
      [](const Call& call, const SimContext&) {
        return std::vector<Algorithm>{
            host_algorithm(call, "FP32, each row summed by 128 lanes and a tree, variance in a second pass",
                           [p = op::from_params<op::LayernormFwdParams>(call.c->params),
                            fault = call.inject](std::span<const PortMemory> ports) { run(p, ports, fault); })};
      },
      [] { return std::span<const FaultInfo>(infos); },
      [](const Call& call, const SimContext&) { return obstacle_of(faults(), call); }};
  return binding;
}

}  // namespace numcheck::kernels::sim
