#include "op/grouped_gemm.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "op/field.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

/// What the reference of `gemm` is asked of one group.
class GroupRequest {
 public:
  GroupRequest(const op::ReferenceRequest& all, const op::GemmParams& product, std::size_t group)
      : params_(op::to_params(product)), request_(all) {
    request_.params = &params_;
    request_.inputs = op::operands_of_group(all.inputs, group);
  }
  GroupRequest(const GroupRequest&) = delete;
  GroupRequest& operator=(const GroupRequest&) = delete;

  [[nodiscard]] const op::ReferenceRequest& get() const noexcept { return request_; }

 private:
  op::Params params_;
  op::ReferenceRequest request_;
};

/// Outputs of all groups, one group after another, from what compute() gives for each.
template <class Result>
Result of_groups(const op::ReferenceRequest& request, Result (*compute)(const op::ReferenceRequest&)) {
  const auto products = op::products_of(op::from_params<op::GroupedGemmParams>(*request.params));
  Result all;
  for (std::size_t group = 0; group < products.size(); ++group) {
    Result own = compute(GroupRequest(request, products[group], group).get());
    for (auto& output : own.outputs) {
      output.port = op::name_in_group(output.port, group);
      all.outputs.push_back(std::move(output));
    }
  }
  return all;
}

op::Values grouped_values(const op::ReferenceRequest& request) {
  return of_groups(request, gemm_reference().values);
}

op::Yardsticks grouped_yardsticks(const op::ReferenceRequest& request) {
  return of_groups(request, gemm_reference().yardsticks);
}

void grouped_derive(const op::DeriveRequest& request, std::span<double> values) {
  const op::GroupPort known = op::group_port(request.port->name);
  const op::Params params =
      op::to_params(op::products_of(op::from_params<op::GroupedGemmParams>(*request.params)).at(known.group));
  op::Port port = *request.port;
  port.name = known.port;
  const std::vector<op::Operand> inputs = op::operands_of_group(request.inputs, known.group);
  gemm_reference().derive({&params, inputs, &port}, values);
}

/// What the diagnoses of `gemm` say of one group's product; nothing where the reference has no values of it.
std::vector<op::Finding> diagnosis_of_group(const op::FindingRequest& all, const op::GemmParams& product,
                                            const op::Delivered& delivered, std::size_t group) {
  const auto expected = std::ranges::find(all.expected->outputs, delivered.port, &op::OutputValues::port);
  if (expected == all.expected->outputs.end()) {
    return {};
  }
  const op::Params params = op::to_params(product);
  const std::vector<op::Operand> inputs = op::operands_of_group(all.inputs, group);
  op::Values own;
  own.outputs.emplace_back().value = core::Buffer<double>(expected->value.size());
  std::ranges::copy(expected->value.span(), own.outputs.front().value.data());
  const std::vector outputs{delivered};
  const op::Sample sample;
  return gemm_reference().diagnose({&params, inputs, &own, outputs, &sample});
}

std::vector<op::Finding> grouped_diagnosis(const op::FindingRequest& request) {
  const auto products = op::products_of(op::from_params<op::GroupedGemmParams>(*request.params));
  std::vector<op::Finding> findings;
  for (const op::Delivered& delivered : request.outputs) {
    const auto [port, group] = op::group_port(delivered.port);
    if (port == "d" && (request.about.empty() || request.about == delivered.port)) {
      std::ranges::move(diagnosis_of_group(request, products[group], delivered, group), std::back_inserter(findings));
    }
  }
  return findings;
}

}  // namespace

// The reference of `gemm` (gemm.cpp), group by group: its values, its yardsticks, its scales and its diagnoses, each group's sums
// checked in twofold arithmetic. Groups have several outputs of equal rank, so there are no samples. replay() is that of
// a single product, of which verdicts ask. What `gemm` has beyond that (mistakes for the certificate, Freivalds' check) is
// left out here.
op::Reference grouped_gemm_reference() {
  static const std::string version = "grouped_gemm/1 " + std::string(gemm_reference().version);
  op::Reference reference;
  reference.values = &grouped_values;
  reference.yardsticks = &grouped_yardsticks;
  reference.version = version;
  reference.derive = &grouped_derive;
  reference.diagnose = &grouped_diagnosis;
  reference.replay = gemm_reference().replay;
  return reference;
}

}  // namespace numcheck::reference
