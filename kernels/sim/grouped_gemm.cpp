#include "kernels/sim/grouped_gemm.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "kernels/contract/group_ports.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/sim/binding.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fault_table.hpp"
#include "kernels/sim/tensor_io.hpp"

namespace numcheck::kernels::sim {
namespace {

GroupTasks tasks_of(const Call& call, const SimContext& context) {
  const auto p = op::from_params<op::GroupedGemmParams>(call.c->params);
  GroupTasks tasks;
  for (const op::GemmParams& product : op::products_of(p)) {
    GroupTask task;
    task.gemm = make_sim_gemm(product, *call.c->mode, context.sm, context.tf32_override);
    task.a_of = task.b_of = task.bias_of = task.scales_of = tasks.size();
    tasks.push_back(std::move(task));
  }
  return tasks;
}

/// The group whose port of that name the task reads.
std::size_t group_read(const GroupTask& task, std::size_t own, const op::Port& port) {
  if (port.name == "a" || port.name == "b") {
    return port.name == "a" ? task.a_of : task.b_of;
  }
  if (port.name == "bias") {
    return task.bias_of;
  }
  const bool scales = port.name.ends_with("_scale_inv") || port.name.ends_with("_global_scale");
  return scales ? task.scales_of : own;
}

/// The group's ports, with the inputs that the task names.
std::vector<PortMemory> memory_of(const GroupTask& task, std::size_t group, const std::vector<GroupPorts>& all) {
  const std::span<const PortMemory> own = all[group].memory();
  std::vector<PortMemory> ports(own.begin(), own.end());
  for (PortMemory& port : ports) {
    port.data = port_memory(all[group_read(task, group, *port.port)].memory(), port.port->name).data;
  }
  return ports;
}

void run_group(const GroupTask& task, std::span<const PortMemory> ports) {
  if (task.stale) {
    const auto elements = static_cast<std::size_t>(port_memory(ports, "d").port->elements());
    write_floats(ports, "d", std::vector<float>(elements, 1.0F), "");
    return;
  }
  model::GemmTask product = make_task(task.gemm, ports, 0, SplitK{});
  plant_fault(task.fault, task.gemm, product);
  if (task.products.has_value()) {
    product.a.columns = product.b.rows = *task.products;
  }
  const float amax = amax_with_fault(task.fault, model::simulate_gemm(product));
  if (const PortMemory* port = find_port(ports, "d_amax"); port != nullptr) {
    std::memcpy(first_element(port), &amax, sizeof amax);
  }
}

void run_groups(const GroupTasks& tasks, std::span<const PortMemory> ports) {
  const std::vector<GroupPorts> all = groups_of(ports, tasks.size());
  for (std::size_t group = 0; group < tasks.size(); ++group) {
    if (tasks[group].runs) {
      run_group(tasks[group], memory_of(tasks[group], group, all));
    }
  }
}

Algorithm algorithm(const Call& call, const SimContext& context) {
  GroupTasks tasks = tasks_of(call, context);
  plant_group_fault(call.inject, tasks);
  Algorithm a;
  a.label = fmt::format("simulated sm_{}, {} groups, unsplit", context.sm, tasks.size());
  a.details = {{"schedule", schedule_of(tasks.front().gemm, SplitK{}).text},
               {"groups", std::to_string(tasks.size())},
               {"evidence", context.evidence},
               {"NVIDIA_TF32_OVERRIDE", context.tf32_override.empty() ? "unset" : context.tf32_override}};
  if (tasks.front().gemm.params.in_place) {
    a.details.emplace_back("addend", "in place");
    a.rounding.in_place = true;
  }
  if (!call.inject.empty()) {
    a.details.emplace_back("fault", call.inject);
  }
  a.launch = [tasks = std::move(tasks)](std::span<const PortMemory> ports, std::byte*) {
    run_groups(tasks, ports);
    return not_measured();
  };
  return a;
}

}  // namespace

// Each group by the schedule of a single product; groups run one after another.
const Binding& grouped_gemm() {
  static const SimBinding binding{
      {"sim", "grouped_gemm"},
      [](const Call& call, const SimContext& context) { return sim_gemm_obstacle(*call.c->mode, context.sm); },
      [](const Call& call, const SimContext& context) { return std::vector<Algorithm>{algorithm(call, context)}; },
      &group_faults,
      [](const Call& call, const SimContext& context) {
        return group_fault_obstacle(call.inject, tasks_of(call, context));
      }};
  return binding;
}

}  // namespace numcheck::kernels::sim
