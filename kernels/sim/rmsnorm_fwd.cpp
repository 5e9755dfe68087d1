#include "op/rmsnorm_fwd.hpp"

#include <array>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/norm_rows.hpp"

namespace numcheck::kernels::sim {
namespace {

std::string no_row(const Call& call) {
  return op::from_params<op::RmsnormFwdParams>(call.c->params).rows < 1 ? "there are no rows" : "";
}

constexpr std::array kOwnFaults = {
    OpFault{{"epsilon_outside_root", "epsilon is added outside the square root"}, &no_row},
    OpFault{{"gamma_order_swapped", "x rsigma is rounded to x's format where it should not be, or the reverse"},
            [](const Call& call) {
              return call.c->mode->first == core::Dtype::fp32 ? std::string("x is FP32, so nothing is rounded")
                                                              : no_row(call);
            }},
};

const std::vector<OpFault>& faults() {
  static const std::vector<OpFault> all = with_own_faults(norm_forward_faults(), kOwnFaults);
  return all;
}

void run(const op::RmsnormFwdParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> x = read_kept(ports, "x", fault);
  const std::vector<float> factors = norm_factors(ports, p, fault);
  const std::vector<RowStatistics> rows = all_row_statistics(x, p, false, fault);
  const core::Dtype format = find_port(ports, "x")->port->dtype;
  const bool rounds = (p.gamma_order == "hf") != (fault == "gamma_order_swapped");
  const auto hidden = static_cast<std::size_t>(p.hidden);
  std::vector<float> y(x.size());
  std::vector<float> rsigma(rows.size());
  core::parallel_for(rows.size(), [&](std::size_t i) {
    rsigma[i] = rows[i].rsigma;
    for (std::size_t j = 0; j < hidden; ++j) {
      float product = kept(x[i * hidden + j] * rows[statistics_row(i, fault)].rsigma, fault);
      if (rounds) {
        product = static_cast<float>(core::round_to(static_cast<double>(product), format));
      }
      y[i * hidden + j] = product * factors[j];
    }
  });
  write_kept(ports, "y", y, fault);
  write_kept(ports, "rsigma", rsigma, fault);
}

}  // namespace

const Binding& rmsnorm_fwd() {
  static const std::vector<FaultInfo> infos = with_store_faults(faults());
  static const SimBinding binding{
      {"sim", "rmsnorm_fwd"},
      [](const Call&, const SimContext&) { return std::string(); },
      [](const Call& call, const SimContext&) {
        return std::vector<Algorithm>{
            host_algorithm(call, "FP32, each row summed by 128 lanes and a tree",
                           [p = op::from_params<op::RmsnormFwdParams>(call.c->params),
                            fault = call.inject](std::span<const PortMemory> ports) { run(p, ports, fault); })};
      },
      [] { return std::span<const FaultInfo>(infos); },
      [](const Call& call, const SimContext&) { return obstacle_of(faults(), call); }};
  return binding;
}

}  // namespace numcheck::kernels::sim
