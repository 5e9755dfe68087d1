#include "verdict/lost_updates.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "op/grouped_gemm.hpp"
#include "op/product_statistics.hpp"
#include "verdict/sampled_elements.hpp"

namespace numcheck::verdict {
namespace {

std::size_t index_of(const prepare::PreparedCase& prepared, std::string_view name) {
  return static_cast<std::size_t>(&op::port_named(prepared.ports, name) - prepared.ports.data());
}

struct Counts {
  std::uint64_t seen = 0, same = 0;
};

/// Of elements to which something other than 0 is added, as far as that is known.
Counts count_same(const EvaluationContext& context, std::size_t output, std::size_t addend) {
  const op::Port& d = context.prepared->ports[output];
  const op::Port& c = context.prepared->ports[addend];
  const bool is_known = context.group->sample.all() && context.streamed == nullptr;
  const std::span<const double> expected =
      is_known ? expected_values(context, d).value.span() : std::span<const double>();
  std::vector<double> before;
  for_sampled_elements(c, context.host[addend].bytes,
                       [&before](double value, std::int64_t) { before.push_back(value); });
  Counts counts;
  std::size_t next = 0;
  for_sampled_elements(d, context.host[output].bytes, [&](double value, std::int64_t index) {
    const double old = before[next++];
    const bool is_updated = expected.empty() || expected[static_cast<std::size_t>(index)] != old;
    if (std::isfinite(old) && is_updated) {
      ++counts.seen;
      counts.same += value == old ? 1 : 0;
    }
  });
  return counts;
}

bool adds_to_its_addend(const op::GemmParams& p) {
  return p.beta == 1 && p.alpha != 0 && p.k > 0 && p.epilogue == "none" && !p.bias;
}

}  // namespace

std::vector<op::Finding> lost_updates(const EvaluationContext& context) {
  std::vector<op::Finding> findings;
  const prepare::PreparedCase& prepared = *context.prepared;
  if (context.gates_only && prepared.c->tolerance.statistics.empty()) {
    return findings;
  }
  for (const op::Port& port : prepared.ports) {
    const std::optional<op::Product> product = op::product_behind(*prepared.c->op, prepared.c->params, port.name);
    if (!product.has_value() || !adds_to_its_addend(product->params)) {
      continue;
    }
    const std::size_t output = index_of(prepared, port.name), addend = index_of(prepared, product->c);
    if (prepared.ports[addend].dtype != port.dtype) {
      continue;
    }
    const auto [seen, same] = count_same(context, output, addend);
    if (seen > 0) {
      const double share = static_cast<double>(same) / static_cast<double>(seen);
      op::Finding finding{.name = std::string(op::kUpdatesLost), .port = std::string(port.name), .measured = share};
      finding.text =
          same == 0 ? fmt::format("none of {} elements is as it was in {}", seen, product->c)
                    : fmt::format("{:.3g} % of {} elements are as they were in {}: what was added rounds away in {}",
                                  100 * share, seen, product->c, core::dtype_info(port.dtype).name);
      findings.push_back(finding);
    }
  }
  return findings;
}

}  // namespace numcheck::verdict
