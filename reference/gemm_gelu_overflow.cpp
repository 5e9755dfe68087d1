#include "reference/gemm_gelu_overflow.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reference/broken_elements.hpp"
#include "reference/cause.hpp"
#include "reference/gemm_operands.hpp"
#include "reference/gemm_sampled.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kComputed = 64;

}  // namespace

std::vector<op::Finding> gelu_overflow(const op::FindingRequest& request) {
  const op::Delivered& d = request.outputs[0];
  const op::ReferenceRequest of_broken{
      request.params, {request.inputs.begin(), request.inputs.end()}, {broken_elements(request, kComputed)}};
  const GemmOperands g = gemm_operands(of_broken);
  const std::vector<std::int64_t>& elements = of_broken.sample.indices;
  if (parse_epilogue(g.params) != Epilogue::gelu || elements.empty()) {
    return {};
  }
  const std::vector<double> sums = sampled_products(g.shape, g.a, g.b, elements);
  const double half_ulp = core::dtype_info(d.dtype).unit_roundoff;
  std::size_t explained = 0;
  for (std::size_t n = 0; n < elements.size(); ++n) {
    const double z = affine(g, sums[n], elements[n], elements[n] % g.shape.n);
    const bool below = z < -core::dtype_info(d.dtype).max_finite * (1 - half_ulp);
    explained += below && std::isnan(d.value[static_cast<std::size_t>(elements[n])]) ? 1 : 0;
  }
  const double share = static_cast<double>(explained) / static_cast<double>(elements.size());
  if (share < kLeastExplained) {
    return {};
  }
  std::string cause =
      fmt::format("sums below the smallest {} number become NaN in gelu", core::dtype_info(d.dtype).name);
  return {
      cause_finding(op::kGeluOverflow, d.port, share, std::move(cause), "what is wrong", op::Finding::About::pattern)};
}

}  // namespace numcheck::reference
