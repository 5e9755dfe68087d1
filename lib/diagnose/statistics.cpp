// Hypotheses about what attention's backward pass reads of the forward pass: o before it is rounded, or an o and a log-sum-exp
// that are not those of the other inputs.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {
namespace {

constexpr std::array<std::string_view, 2> kStatistics = {"o", "lse"};

/// The op's outputs for the same inputs, but for these, which are what q, k and v make of them.
decltype(Trial::instead) with_own(const op::Reference& reference, std::vector<op::Port> statistics) {
  return [reference, statistics = std::move(statistics)](const op::ReferenceRequest& request) {
    op::ReferenceRequest own{request.params, request.inputs, request.sample, true};
    std::vector<core::Buffer<double>> derived;
    for (const op::Port& port : statistics) {
      derived.emplace_back(static_cast<std::size_t>(port.elements()));
      reference.derive({request.params, request.inputs, &port}, derived.back().span());
      std::ranges::find(own.inputs, port.name, &op::Operand::port)->data = derived.back().data();
    }
    return reference.values(own);
  };
}

std::vector<Hypothesis> own_statistics(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  std::vector<op::Port> statistics;
  for (const op::Port& port : c.op->ports(c.params, *c.mode)) {
    const bool is_read = port.role == op::Role::input && std::ranges::find(kStatistics, port.name) != kStatistics.end();
    if (is_read) {
      statistics.push_back(port);
    }
  }
  if (c.op->name != "attention_bwd" || c.mode->scaled || statistics.size() != kStatistics.size()) {
    return {};
  }
  const op::Reference& reference = prepare::find_row(evidence.subject.catalog, c.op->name)->reference;
  std::vector<Hypothesis> all;
  const auto add = [&](std::string name, std::vector<op::Port> own, std::string cause, std::string remedy) {
    Trial trial = as_declared(evidence.subject);
    trial.instead = with_own(reference, std::move(own));
    all.push_back({std::move(name), "statistics", std::move(cause), std::move(remedy), std::move(trial)});
  };
  const auto o = std::ranges::find(statistics, "o", &op::Port::name);
  if (core::dtype_info(o->dtype).storage_bytes == 2) {
    add("o_before_rounding", {*o},
        "the gradients are those of o before it is rounded, more exact than those that a kernel has which reads the "
        "stored "
        "o for its row sums D of do o",
        "Nothing needs to be mended. The derivative of softmax(q k) v as a framework takes it has such gradients; "
        "fused "
        "kernels do not, most of all where a query sees few keys. Compare kernels with kernels.");
  }
  if (std::ranges::any_of(statistics, [&](const op::Port& port) { return evidence.subject.inputs.has(port); })) {
    add("statistics_of_other_inputs", statistics,
        "the gradients follow from q, k and v, but what was given as o and lse does not",
        "Look at where o and lse come from: another step, scale or mask, or a log-sum-exp in base 2.");
  }
  return all;
}

constexpr std::array kRows = {CatalogueRow{"o_before_rounding, statistics_of_other_inputs",
                                           "attention's gradients from an o and lse that are not those given",
                                           &own_statistics}};

}  // namespace

std::span<const CatalogueRow> statistics_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
