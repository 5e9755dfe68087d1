#include "op/layernorm_bwd.hpp"

#include <vector>

#include "reference/flushed_norms.hpp"
#include "reference/flushed_subnormals.hpp"
#include "reference/mistakes.hpp"
#include "reference/norm_diagnosis.hpp"
#include "reference/norm_gradients.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

op::Values values(const op::ReferenceRequest& request) {
  return norm_gradients(request, op::from_params<op::LayernormBwdParams>(*request.params));
}

op::Values losses(const op::ReferenceRequest& request) {
  return lost_gradients(request, op::from_params<op::LayernormBwdParams>(*request.params));
}

void derive(const op::DeriveRequest& request, std::span<double> values) {
  constexpr bool kCentred = true;
  derive_statistics(request, op::from_params<op::LayernormBwdParams>(*request.params), kCentred, values);
}

std::vector<op::Settled> settle(const op::FindingRequest& request) {
  return settle_gradients(request, op::from_params<op::LayernormBwdParams>(*request.params));
}

std::vector<op::Finding> diagnose(const op::FindingRequest& request) {
  std::vector<op::Finding> findings;
  FlushedNorm flushed(request, op::from_params<op::LayernormBwdParams>(*request.params));
  explain_flushes(request, &values, &losses, &flushed, findings);
  explain_cubes(request, findings);
  return findings;
}

}  // namespace

op::Reference layernorm_bwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.derive = &derive;
  reference.diagnose = &diagnose;
  reference.settle = &settle;
  reference.mistakes = &layernorm_bwd_mistakes;
  reference.version = "layernorm_bwd-6";
  return reference;
}

}  // namespace numcheck::reference
