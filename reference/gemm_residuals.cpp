#include "reference/gemm_residuals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

#include "core/dtype.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kMaxElements = 1024, kMinElements = 64;
constexpr std::size_t kControls = 64;
/// Of all elements together: every hypothesis takes this long.
constexpr std::int64_t kMaxProducts = std::int64_t{1} << 26;

std::size_t kept_elements(std::int64_t k) {
  return static_cast<std::size_t>(std::clamp(kMaxProducts / std::max<std::int64_t>(1, k), kMinElements, kMaxElements));
}

}  // namespace

GemmResiduals::GemmResiduals(const op::FindingRequest& request)
    : g_(gemm_operands(
          op::ReferenceRequest{request.params, {request.inputs.begin(), request.inputs.end()}, *request.sample})) {
  collect(request);
}

void GemmResiduals::collect(const op::FindingRequest& request) {
  const op::Delivered& d = request.outputs[0];
  const auto expected = request.expected->outputs.at(0).value.span();
  const std::vector<std::int64_t>& sample = request.sample->indices;
  const bool relu = parse_epilogue(g_.params) == Epilogue::relu;
  const double largest = core::dtype_info(d.dtype).max_finite;
  const std::size_t step = (expected.size() / kControls) | 1;  // odd, so that controls are not all of one column
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int64_t index = sample.empty() ? static_cast<std::int64_t>(i) : sample[i];
    const double got = d.value[static_cast<std::size_t>(index)];
    const double residual = got - expected[i];
    const bool cut = std::abs(got * d.scale) >= largest || (relu && (got <= 0 || expected[i] <= 0));
    if (!std::isfinite(residual) || cut) {
      continue;
    }
    const std::int64_t columns = g_.shape.n, per_batch = g_.shape.m * columns;
    const Element element{index / per_batch, index % per_batch / columns, index % columns, residual};
    if (residual != 0) {
      elements_.push_back(element);
    }
    if (i % step == 0) {
      controls_.push_back(element);
    }
  }
  const std::size_t kept = kept_elements(g_.shape.k);
  if (elements_.size() > kept) {
    std::ranges::nth_element(elements_, elements_.begin() + static_cast<std::ptrdiff_t>(kept),
                             [](const Element& x, const Element& y) {
                               return std::pair(-std::abs(x.residual), std::tie(x.batch, x.row, x.column)) <
                                      std::pair(-std::abs(y.residual), std::tie(y.batch, y.row, y.column));
                             });
    elements_.resize(kept);
  }
  for (const Element& e : elements_) {
    energy_ += e.residual * e.residual;
    sum_ += std::abs(e.residual);
  }
}

}  // namespace numcheck::reference
