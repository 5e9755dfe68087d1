#include "reference/softmax_lanes.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/isa.hpp"
#include "reference/softmax_kernels.hpp"

namespace numcheck::reference {
namespace {

/// Of larger scores u t is no longer small beside kSmallExponentError.
constexpr double kLargestScore = 0x1p11;

/// Whole rows, none of which has a mask or ends at a diagonal.
bool are_plain(std::span<const SoftmaxRow> rows) {
  const std::size_t columns = rows.front().columns;
  for (std::size_t l = 0; l < rows.size(); ++l) {
    const SoftmaxRow& row = rows[l];
    if (row.mask != nullptr || row.hidden != 0 || row.masked_is_zero || row.columns != columns ||
        row.x != rows.front().x + l * columns) {
      return false;
    }
  }
  return true;
}

}  // namespace

const SoftmaxKernels& softmax_kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(softmax_kernels)();
}

std::size_t softmax_lanes() {
  return softmax_kernels().lanes;
}

bool softmax_rows(std::span<const SoftmaxRow> rows, std::size_t first, TrackedOutput& y) {
  const SoftmaxKernels& kernels = softmax_kernels();
  if (rows.size() != kernels.lanes || !are_plain(rows)) {
    return false;
  }
  const std::size_t columns = rows.front().columns;
  const double scale = rows.front().scale;
  std::array<double, TrackedLanes::kMost> maximum{}, bound{};
  for (std::size_t l = 0; l < rows.size(); ++l) {
    const ScoreExtent extent = kernels.extent(rows[l].x, columns, scale);
    if (!(extent.magnitude <= kLargestScore)) {
      return false;
    }
    maximum[l] = extent.largest;
    // That of the product that is the largest score.
    bound[l] = Tracked::rounded32(extent.largest, 0, 0).with_underflow(tolerance::kUnderflow).b;
  }
  thread_local std::vector<double> interleaved;
  interleaved.resize(columns * rows.size());
  norm_kernels().interleave(rows.front().x, columns, interleaved.data());
  TrackedLanes sums;
  kernels.sums(interleaved.data(), columns, scale, maximum.data(), bound.data(), sums);
  for (std::size_t l = 0; l < rows.size(); ++l) {
    const Tracked factor = detail::reciprocal(Tracked(sums.y[l], sums.b[l], sums.v[l]));
    const std::size_t at = first + l * columns;
    kernels.outputs(rows[l].x, columns, scale, {maximum[l], bound[l], {factor.y, factor.b, factor.v}},
                    {y.value_at(at), y.magnitude_at(at), y.deviation_at(at), nullptr});
  }
  return true;
}

}  // namespace numcheck::reference
