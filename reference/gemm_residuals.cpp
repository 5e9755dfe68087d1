#include "reference/gemm_residuals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/dtype.hpp"
#include "core/parallel.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kMaxElements = 1024, kMinElements = 64;
constexpr std::size_t kControls = 64;
/// Of all elements together: every hypothesis takes this long.
constexpr std::int64_t kMaxProducts = std::int64_t{1} << 26;

std::size_t kept_elements(std::int64_t k) {
  return static_cast<std::size_t>(std::clamp(kMaxProducts / std::max<std::int64_t>(1, k), kMinElements, kMaxElements));
}

/// Leaves the `count` elements with the largest residuals.
void keep_largest(std::size_t count, std::vector<Element>& elements) {
  if (elements.size() <= count) {
    return;
  }
  std::ranges::nth_element(elements, elements.begin() + static_cast<std::ptrdiff_t>(count),
                           [](const Element& x, const Element& y) {
                             return std::pair(-std::abs(x.residual), std::tie(x.batch, x.row, x.column)) <
                                    std::pair(-std::abs(y.residual), std::tie(y.batch, y.row, y.column));
                           });
  elements.resize(count);
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
  const std::int64_t columns = g_.shape.n, per_batch = g_.shape.m * columns;
  const auto residual_of = [&](std::size_t i) -> std::optional<Element> {
    const std::int64_t index = sample.empty() ? static_cast<std::int64_t>(i) : sample[i];
    const double got = d.value[static_cast<std::size_t>(index)];
    const double residual = got - expected[i];
    const bool cut = std::abs(got * d.scale) >= largest || (relu && (got <= 0 || expected[i] <= 0));
    if (!std::isfinite(residual) || cut) {
      return std::nullopt;
    }
    return Element{index / per_batch, index % per_batch / columns, index % columns, residual};
  };
  for (std::size_t i = 0; i < expected.size(); i += step) {
    if (const std::optional<Element> element = residual_of(i)) {
      controls_.push_back(*element);
    }
  }
  // Each task keeps its own largest ones, among which the largest of all are.
  constexpr std::size_t kPerTask = std::size_t{1} << 18;
  std::vector<std::vector<Element>> parts((expected.size() + kPerTask - 1) / kPerTask);
  core::parallel_chunks(expected.size(), kPerTask, [&](std::size_t task, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (const std::optional<Element> element = residual_of(i); element && element->residual != 0) {
        parts[task].push_back(*element);
      }
    }
    keep_largest(kept_elements(g_.shape.k), parts[task]);
  });
  for (const std::vector<Element>& part : parts) {
    elements_.insert(elements_.end(), part.begin(), part.end());
  }
  keep_largest(kept_elements(g_.shape.k), elements_);
  for (const Element& e : elements_) {
    energy_ += e.residual * e.residual;
    sum_ += std::abs(e.residual);
  }
}

}  // namespace numcheck::reference
