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

/// A row that is taken in a lane.
struct TakenRow {
  std::size_t index;
  ScoreExtent extent;
};

/// Rows without a mask whose scores are finite and not too large. What becomes of a row does not depend on the others.
std::vector<TakenRow> rows_to_take(std::span<const SoftmaxRow> rows, std::size_t columns,
                                   const SoftmaxKernels& kernels) {
  std::vector<TakenRow> taken;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SoftmaxRow& row = rows[i];
    if (row.mask != nullptr || row.hidden != 0 || row.masked_is_zero || row.columns != columns) {
      continue;
    }
    const ScoreExtent extent = kernels.extent(row.x, columns, row.scale);
    if (extent.magnitude <= kLargestScore) {
      taken.push_back({i, extent});
    }
  }
  return taken;
}

/// The numbers of the rows, one after the other. Lanes that are left have those of the last row.
const double* numbers_of(std::span<const SoftmaxRow> rows, std::span<const TakenRow> taken, std::size_t columns,
                         std::size_t lanes) {
  if (taken.size() == lanes) {
    return rows.front().x;
  }
  thread_local std::vector<double> numbers;
  numbers.resize(lanes * columns);
  for (std::size_t l = 0; l < lanes; ++l) {
    std::copy_n(rows[taken[std::min(l, taken.size() - 1)].index].x, columns, numbers.data() + l * columns);
  }
  return numbers.data();
}

}  // namespace

const SoftmaxKernels& softmax_kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(softmax_kernels)();
}

std::size_t softmax_lanes() {
  return softmax_kernels().lanes;
}

std::bitset<TrackedLanes::kMost> softmax_rows(std::span<const SoftmaxRow> rows, std::size_t columns, std::size_t first,
                                              TrackedOutput& y) {
  const SoftmaxKernels& kernels = softmax_kernels();
  std::bitset<TrackedLanes::kMost> set;
  const std::vector<TakenRow> taken = rows_to_take(rows, columns, kernels);
  if (taken.empty()) {
    return set;
  }
  const double scale = rows.front().scale;
  if (y.magnitude_at(first) == nullptr) {  // values alone
    for (const TakenRow& row : taken) {
      kernels.values(rows[row.index].x, columns, scale, row.extent.largest, y.value_at(first + row.index * columns));
      set.set(row.index);
    }
    return set;
  }
  std::array<double, TrackedLanes::kMost> maximum{}, bound{};
  for (std::size_t l = 0; l < kernels.lanes; ++l) {
    maximum[l] = taken[std::min(l, taken.size() - 1)].extent.largest;
    // That of the product that is the largest score.
    bound[l] = Tracked::rounded32(maximum[l], 0, 0).with_underflow(tolerance::kUnderflow).b;
  }
  thread_local std::vector<double> interleaved;
  interleaved.resize(columns * kernels.lanes);
  norm_kernels().interleave(numbers_of(rows, taken, columns, kernels.lanes), columns, interleaved.data());
  TrackedLanes sums;
  kernels.sums(interleaved.data(), columns, scale, maximum.data(), bound.data(), sums);
  for (std::size_t l = 0; l < taken.size(); ++l) {
    const Tracked factor = detail::reciprocal(Tracked(sums.y[l], sums.b[l], sums.v[l]));
    const std::size_t row = taken[l].index, at = first + row * columns;
    kernels.outputs(rows[row].x, columns, scale, {maximum[l], bound[l], {factor.y, factor.b, factor.v}},
                    {y.value_at(at), y.magnitude_at(at), y.deviation_at(at), nullptr});
    set.set(row);
  }
  return set;
}

}  // namespace numcheck::reference
