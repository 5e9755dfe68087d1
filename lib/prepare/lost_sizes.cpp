#include "prepare/lost_sizes.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"

namespace numcheck::prepare {
namespace {

constexpr double kKept = 0.8;

/// Sums of squares before and after rounding.
struct Energy {
  double before = 0, after = 0;

  void add(double x, double rounded) {
    before += x * x;
    after += rounded * rounded;
  }
  [[nodiscard]] bool is_lost() const { return std::isfinite(after) && !(after >= kKept * before); }
};

/// A matrix of a batch before and after it was rounded, row-major.
struct RoundedMatrix {
  const double* before;
  const double* after;
  double before_scale, after_scale;
  std::size_t rows, cols;
};

bool loses_size(const RoundedMatrix& m) {
  constexpr std::size_t kFewestRows = 64, kMostChunks = 32;  // each chunk has sums of all columns
  const std::size_t rows = std::max(kFewestRows, (m.rows + kMostChunks - 1) / kMostChunks);
  std::atomic<bool> lost = false;
  std::vector<std::vector<Energy>> columns((m.rows + rows - 1) / rows);
  core::parallel_chunks(m.rows, rows, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    std::vector<Energy>& sums = columns[chunk];
    sums.resize(m.cols);
    for (std::size_t r = begin; r < end; ++r) {
      Energy row;
      for (std::size_t c = 0; c < m.cols; ++c) {
        const double from = m.before[r * m.cols + c] * m.before_scale, to = m.after[r * m.cols + c] * m.after_scale;
        row.add(from, to);
        sums[c].add(from, to);
      }
      if (row.is_lost()) {
        lost = true;
      }
    }
  });
  for (std::size_t c = 0; c < m.cols && !lost; ++c) {
    Energy column;
    for (const std::vector<Energy>& sums : columns) {
      column.before += sums[c].before;
      column.after += sums[c].after;
    }
    lost = column.is_lost();
  }
  return lost;
}

bool loses_size(const op::Operand& x, const op::Operand& rounded) {
  const auto rows = static_cast<std::size_t>(x.rows), cols = static_cast<std::size_t>(x.cols);
  for (std::size_t batch = 0; batch < static_cast<std::size_t>(x.batch); ++batch) {
    const std::size_t first = batch * rows * cols;
    if (loses_size({x.data + first, rounded.data + first, x.scale, rounded.scale, rows, cols})) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool loses_size(std::span<const op::Operand> unrounded, std::span<const op::Operand> rounded) {
  return std::ranges::any_of(rounded, [unrounded](const op::Operand& operand) {
    const op::Operand* before = op::find_operand(unrounded, operand.port);
    const bool is_comparable = core::is_fp8(operand.dtype) && before != nullptr && before->data != nullptr &&
                               operand.data != nullptr && before->elements() == operand.elements();
    return is_comparable && loses_size(*before, operand);
  });
}

}  // namespace numcheck::prepare
