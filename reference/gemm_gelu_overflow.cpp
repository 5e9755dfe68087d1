#include "reference/gemm_gelu_overflow.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reference/broken_elements.hpp"
#include "reference/cause.hpp"
#include "reference/gemm_operands.hpp"
#include "reference/gemm_sampled.hpp"

namespace numcheck::reference {

std::vector<op::Finding> gelu_overflow(const op::FindingRequest& request) {
  const op::Delivered& d = request.outputs[0];
  const std::vector<BrokenElement> broken = broken_elements(request, Epilogue::gelu);
  if (broken.empty() || parse_epilogue(op::from_params<op::GemmParams>(*request.params)) != Epilogue::gelu) {
    return {};
  }
  const GemmOperands g = gemm_operands({request.params, {request.inputs.begin(), request.inputs.end()}, {}});
  const double least = -core::dtype_info(d.dtype).max_finite * (1 - core::dtype_info(d.dtype).unit_roundoff);
  const double share = explained_share(broken, [&](const BrokenElement& element) {
    const double sum = std::isnan(element.got) ? sampled_products(g.shape, g.a, g.b, {&element.at, 1}).front() : 0;
    return std::isnan(element.got) && affine(g, sum, element.at, element.at % g.shape.n) < least;
  });
  if (share < kLeastExplained) {
    return {};
  }
  std::string cause =
      fmt::format("sums below the smallest {} number become NaN in gelu", core::dtype_info(d.dtype).name);
  return {
      cause_finding(op::kGeluOverflow, d.port, share, std::move(cause), "what is wrong", op::Finding::About::pattern)};
}

}  // namespace numcheck::reference
