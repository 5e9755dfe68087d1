#include "op/grouped_gemm.hpp"

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

}  // namespace

// The reference of `gemm` (gemm.cpp), group by group: its values and its yardsticks, each group's sums checked in
// twofold arithmetic. Groups have several outputs of equal rank, so there are no samples. replay() is that of a single
// product, of which verdicts ask. What `gemm` has beyond that (mistakes for the certificate, Freivalds' check and
// diagnoses) is left out here.
op::Reference grouped_gemm_reference() {
  static const std::string version = "grouped_gemm/1 " + std::string(gemm_reference().version);
  op::Reference reference;
  reference.values = &grouped_values;
  reference.yardsticks = &grouped_yardsticks;
  reference.version = version;
  reference.replay = gemm_reference().replay;
  return reference;
}

}  // namespace numcheck::reference
