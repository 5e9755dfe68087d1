#include "reference/gemm_sampled.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "core/buffer.hpp"
#include "core/parallel.hpp"

namespace numcheck::reference {
namespace {

using Index = std::int64_t;

// Doubles in a packed panel (32 MiB): large enough to amortise a pass over the samples, small enough to stay modest.
constexpr Index kPanelDoubles = Index{4} << 20;
constexpr Index kShortestPanel = 64;
constexpr Index kLongestPanel = 4096;
constexpr std::size_t kSamplesPerTask = 256;
constexpr std::size_t kLinesPerTask = 64;
// Independent partial sums, so that the compiler can use vector registers without reordering any of them.
constexpr Index kLanes = 8;

/// The distinct rows of A (or columns of B) that a sample touches, and access to a panel of each along k.
/// A line is batch * count + position.
class Lines {
 public:
  /// `count` lines per matrix; `contiguous` if the elements of a line are adjacent in memory.
  Lines(const double* data, Index count, Index k, bool contiguous, std::vector<Index> used)
      : data_(data), count_(count), k_(k), contiguous_(contiguous), lines_(std::move(used)) {
    std::ranges::sort(lines_);
    const auto tail = std::ranges::unique(lines_);
    lines_.erase(tail.begin(), tail.end());
  }

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(lines_.size()); }
  [[nodiscard]] bool contiguous() const noexcept { return contiguous_; }

  /// Makes elements [begin, begin + length) of every line available.
  void load(Index begin, Index length) {
    begin_ = begin;
    length_ = length;
    if (contiguous_) {
      return;
    }
    const auto needed = static_cast<std::size_t>(size() * length);
    if (panel_.size() < needed) {
      panel_ = core::Buffer<double>(needed);
    }
    core::parallel_chunks(lines_.size(), kLinesPerTask, [&](std::size_t, std::size_t first, std::size_t last) {
      for (Index t = 0; t < length; ++t) {
        for (std::size_t l = first; l < last; ++l) {
          const Index line = lines_[l];
          const Index offset = (line / count_ * k_ + begin + t) * count_ + line % count_;
          panel_[l * static_cast<std::size_t>(length) + static_cast<std::size_t>(t)] = data_[offset];
        }
      }
    });
  }

  [[nodiscard]] const double* panel(Index line) const {
    if (contiguous_) {
      return data_ + line * k_ + begin_;
    }
    const auto slot = std::ranges::lower_bound(lines_, line) - lines_.begin();
    return panel_.data() + slot * length_;
  }

 private:
  const double* data_;
  Index count_;
  Index k_;
  bool contiguous_;
  std::vector<Index> lines_;
  core::Buffer<double> panel_;
  Index begin_ = 0;
  Index length_ = 0;
};

template <class Term>
double sum_terms(const double* a, const double* b, Index length, Term term) {
  std::array<double, kLanes> lanes{};
  Index t = 0;
  for (; t + kLanes <= length; t += kLanes) {
    for (Index l = 0; l < kLanes; ++l) {
      lanes[static_cast<std::size_t>(l)] += term(a[t + l] * b[t + l]);
    }
  }
  for (; t < length; ++t) {
    lanes[0] += term(a[t] * b[t]);
  }
  double sum = 0;
  for (const double lane : lanes) {
    sum += lane;
  }
  return sum;
}

/// Calls visit(sample, a, b, length) for every sample and every panel of the reduction, panels in order.
template <class Visit>
void for_each_panel(const ProductShape& shape, Factor<double> a, Factor<double> b, std::span<const Index> indices,
                    Visit visit) {
  const auto row_line = [&](Index index) { return index / shape.n; };
  const auto col_line = [&](Index index) { return index / (shape.m * shape.n) * shape.n + index % shape.n; };
  std::vector<Index> used_rows(indices.size());
  std::vector<Index> used_cols(indices.size());
  std::ranges::transform(indices, used_rows.begin(), row_line);
  std::ranges::transform(indices, used_cols.begin(), col_line);
  Lines rows(a.data, shape.m, shape.k, !a.transposed, std::move(used_rows));
  Lines cols(b.data, shape.n, shape.k, b.transposed, std::move(used_cols));
  const Index packed =
      std::max<Index>(1, (rows.contiguous() ? 0 : rows.size()) + (cols.contiguous() ? 0 : cols.size()));
  const Index panel = std::clamp(kPanelDoubles / packed / kLanes * kLanes, kShortestPanel, kLongestPanel);
  for (Index begin = 0; begin < shape.k; begin += panel) {
    const Index length = std::min(panel, shape.k - begin);
    rows.load(begin, length);
    cols.load(begin, length);
    core::parallel_chunks(indices.size(), kSamplesPerTask, [&](std::size_t, std::size_t first, std::size_t last) {
      for (std::size_t s = first; s < last; ++s) {
        visit(s, rows.panel(row_line(indices[s])), cols.panel(col_line(indices[s])), length);
      }
    });
  }
}

}  // namespace

std::vector<double> sampled_products(const ProductShape& shape, Factor<double> a, Factor<double> b,
                                     std::span<const std::int64_t> indices) {
  std::vector<double> sums(indices.size(), 0.0);
  for_each_panel(shape, a, b, indices, [&](std::size_t s, const double* x, const double* y, Index length) {
    sums[s] += sum_terms(x, y, length, [](double p) { return p; });
  });
  return sums;
}

SampledYardsticks sampled_yardsticks(const ProductShape& shape, Factor<double> a, Factor<double> b,
                                     std::span<const std::int64_t> indices) {
  SampledYardsticks out{std::vector<double>(indices.size(), 0.0), std::vector<double>(indices.size(), 0.0)};
  for_each_panel(shape, a, b, indices, [&](std::size_t s, const double* x, const double* y, Index length) {
    out.magnitude[s] += sum_terms(x, y, length, [](double p) { return std::abs(p); });
    out.second_moment[s] += sum_terms(x, y, length, [](double p) { return p * p; });
  });
  return out;
}

}  // namespace numcheck::reference
