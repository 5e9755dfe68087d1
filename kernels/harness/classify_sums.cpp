#include "kernels/harness/classify_sums.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/contract/ports.hpp"
#include "kernels/harness/sums_probe.hpp"

namespace numcheck::kernels::harness {
namespace {

using model::PrecisionClass;

/// The products whose sums tell: one, or those of several groups.
std::vector<op::Product> probed_products(const Call& call) {
  std::vector<op::Product> products;
  for (const op::Port& port : call.ports) {
    std::optional<op::Product> product =
        port.role == op::Role::output ? op::product_behind(*call.c->op, call.c->params, port.name) : std::nullopt;
    if (product.has_value() && sums_probe_obstacle(product->params, *call.c->mode).empty()) {
      products.push_back(*std::move(product));
    }
  }
  return products;
}

}  // namespace

std::string sums_obstacle(const Call& call) {
  if (!op::is_product(*call.c->op) || !core::is_fp8(call.c->mode->first)) {
    return "the probe is defined for gemm and grouped_gemm in FP8";
  }
  return probed_products(call).empty() ? "no product has sums that tell" : "";
}

Classification classify_sums(const Algorithm& algorithm, const Call& call, DeviceMemory& memory,
                             std::span<const PortMemory> ports, std::byte* workspace, Launcher& launcher) {
  const std::vector<op::Product> products = probed_products(call);
  std::vector<SumsProbe> probes;
  prepare_classification(memory, ports);
  for (const op::Product& product : products) {
    probes.emplace_back(product, memory, ports).fill();
    const PortMemory& d = port_memory(ports, product.d);
    memory.fill(d.data, 0xFF, d.port->extent_bytes());  // NaN: what is not written is not taken for what is lost
  }
  const ReadScope reads(memory);
  static_cast<void>(launcher.start(algorithm, "classification of sums", ports, workspace));
  std::ranges::for_each(probes, &SumsProbe::read);
  launcher.finish(memory);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    Classification found = probes[i].classify();
    if (found.precision != PrecisionClass::fp8_promoted) {
      if (probes.size() > 1) {
        found.note = fmt::format("{}{}{}", products[i].d, found.note.empty() ? "" : ": ", found.note);
      }
      return found;
    }
  }
  return {.precision = PrecisionClass::fp8_promoted, .note = ""};
}

}  // namespace numcheck::kernels::harness
