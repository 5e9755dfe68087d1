#include "metric/exact_pass.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "metric/clusters.hpp"
#include "metric/grid.hpp"
#include "metric/kernels.hpp"
#include "metric/merge.hpp"
#include "metric/reader.hpp"

namespace numcheck::metric {
namespace {

constexpr std::size_t kFlatChunk = std::size_t{1} << 16;

/// Sums of a task of the grid.
struct TaskSums {
  ExactSums exact{};
  std::uint64_t padding = 0;
};

/// What is expected from element `origin` on.
struct Expected {
  std::span<const double> values, unrounded;
  std::int64_t origin = 0;
};

/// What a thread works with.
class Worker {
 public:
  Worker(const CompareInput& input, const Setup& setup) : input_(input), setup_(setup), kernels_(kernels()) {}

  Histograms histograms{};

  /// Elements [first, first + count), count <= kSegment; false if one is not RN(y).
  [[nodiscard]] bool add(std::int64_t first, std::size_t count, const Expected& expected, TaskSums& task) {
    const std::size_t padded = (count + kLanes - 1) / kLanes * kLanes;
    decode_from(*input_.port, input_.got, first, std::span(got_).first(count));
    SegmentView view{};
    view.got = got_.data();
    const auto at = static_cast<std::size_t>(first - expected.origin);
    view.expected = expected.values.data() + at;
    view.unrounded = expected.unrounded.empty() ? nullptr : expected.unrounded.data() + at;
    view.magnitude = view.deviation = view.terms = zeros_.data();
    view.position = first;
    view.size = padded;
    if (padded != count) {
      std::fill(got_.begin() + count, got_.begin() + padded, 0.0);
      view.expected = pad(view.expected, count, padded, expected_);
      view.unrounded = view.unrounded == nullptr ? nullptr : pad(view.unrounded, count, padded, unrounded_);
      task.padding += padded - count;
    }
    return kernels_.exact(view, setup_.format, setup_.model, task.exact, histograms);
  }

 private:
  using Values = std::array<double, kSegmentRoom>;

  static const double* pad(const double* from, std::size_t count, std::size_t padded, Values& to) {
    std::copy_n(from, count, to.begin());
    std::fill(to.begin() + count, to.begin() + padded, 0.0);
    return to.data();
  }

  const CompareInput& input_;
  const Setup& setup_;
  const Kernels& kernels_;
  alignas(64) Values got_;
  alignas(64) Values expected_;
  alignas(64) Values unrounded_;
  alignas(64) std::array<float, kSegmentRoom> zeros_{};
};

class ExactPass {
 public:
  ExactPass(const CompareInput& input, const Setup& setup, RowScan* scan)
      : input_(input), setup_(setup), shape_(clustered_shape(*input.port)), scan_(scan) {}

  std::optional<PassResult> run() {
    const bool has_clusters = shape_.rows >= kFewestClusters && shape_.cols >= kFewestClusters;
    if (scan_ != nullptr) {
      run_rows();
    } else if (has_clusters) {
      run_tiles();
    } else {
      run_flat();
    }
    if (wrong_) {
      return std::nullopt;
    }
    finish(has_clusters);
    return std::move(result_);
  }

 private:
  void collect(const Worker& worker) {
    const std::scoped_lock lock(mutex_);
    for (const auto& copy : worker.histograms.spread) {
      std::transform(std::begin(copy), std::end(copy), result_.spread.begin(), result_.spread.begin(), std::plus<>());
    }
    const auto& ulps = worker.histograms.ulps;
    std::transform(std::begin(ulps), std::end(ulps), result_.ulps.begin(), result_.ulps.begin(), std::plus<>());
  }

  [[nodiscard]] Expected all_there() const { return {input_.expected, input_.unrounded, 0}; }

  void run_flat() {
    const auto size = static_cast<std::size_t>(shape_.elements());
    tasks_.resize((size + kFlatChunk - 1) / kFlatChunk);
    core::parallel_chunks(size, kFlatChunk, [&](std::size_t index, std::size_t begin, std::size_t end) {
      const auto worker = std::make_unique<Worker>(input_, setup_);
      for (std::size_t at = begin; at < end && !wrong_; at += kSegment) {
        add(*worker, static_cast<std::int64_t>(at), static_cast<std::int64_t>(end), all_there(), tasks_[index]);
      }
      collect(*worker);
    });
  }

  /// At most a segment of the elements [first, end).
  void add(Worker& worker, std::int64_t first, std::int64_t end, const Expected& expected, TaskSums& task) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kSegment, end - first));
    if (!worker.add(first, count, expected, task)) {
      wrong_ = true;
    }
  }

  /// A row of a tile; `row` is one of all matrices.
  void add_row(Worker& worker, const Tile& tile, std::int64_t row, const Expected& expected, TaskSums& task) {
    const std::int64_t origin = row * shape_.cols, end = origin + tile.column_end;
    for (std::int64_t at = origin + tile.column_begin; at < end && !wrong_; at += kSegment) {
      add(worker, at, end, expected, task);
    }
  }

  void run_tiles() {
    const Grid grid(shape_);
    tasks_.resize(grid.tasks());
    core::parallel_for(grid.tasks(), [&](std::size_t index) {
      const auto worker = std::make_unique<Worker>(input_, setup_);
      for (std::int64_t t = grid.first_tile(index); t < grid.last_tile(index); ++t) {
        const Tile tile = grid.tile(t);
        for (std::int64_t r = tile.row_begin; r < tile.row_end && !wrong_; ++r) {
          add_row(*worker, tile, tile.batch * shape_.rows + r, all_there(), tasks_[index]);
        }
      }
      collect(*worker);
    });
  }

  /// Rows of a source, which has them whole: tiles side by side take turns, with sums of their own, so that the worst elements are those
  /// that run_tiles() finds.
  void run_rows() {
    const Grid grid(shape_);
    const auto blocks = static_cast<std::size_t>(shape_.batch * grid.row_blocks());
    const auto across = static_cast<std::size_t>(grid.column_blocks());
    tasks_.resize(blocks * across);
    core::parallel_for(blocks, [&](std::size_t index) {
      const auto worker = std::make_unique<Worker>(input_, setup_);
      const std::size_t first_tile = index * across;
      const Tile any = grid.tile(static_cast<std::int64_t>(first_tile));
      const std::int64_t end = any.batch * shape_.rows + any.row_end;
      ExpectedRows rows;
      for (std::int64_t r = any.batch * shape_.rows + any.row_begin; r < end && !wrong_; ++r) {
        if (r >= rows.first + rows.count) {
          rows = input_.source->rows(r, std::min(end - r, input_.source->rows_at_a_time()));
          scan_->add(rows);
        }
        const Expected expected{rows.expected, rows.unrounded, rows.first * shape_.cols};
        for (std::size_t t = first_tile; t < first_tile + across; ++t) {
          add_row(*worker, grid.tile(static_cast<std::int64_t>(t)), r, expected, tasks_[t]);
        }
      }
      collect(*worker);
    });
  }

  void finish(bool has_clusters) {
    result_.sums.plan_over_bound = std::numeric_limits<double>::infinity();
    float largest = 0;
    for (const TaskSums& task : tasks_) {
      merge(result_.sums, task.exact.sums);
      result_.specials.padding += task.padding;
      largest = std::max(largest, task.exact.largest);
    }
    // The kernels count errors of zero in bin 1.
    const std::uint64_t zeros = result_.ulps[1] - total_of(result_.sums.arithmetic.nonzero);
    result_.ulps[0] += zeros;
    result_.ulps[1] -= zeros;
    // Of the slope of got - RN(y), which is 0, and so is its standard error if FP32 holds y^2 / V of an element.
    const bool has_slope = has_clusters && largest * 12 * largest > 0;
    result_.slope_error = has_slope ? 0 : std::numeric_limits<double>::infinity();
    result_.slope_predicted = result_.slope_error;
  }

  const CompareInput& input_;
  const Setup& setup_;
  const op::Port shape_;
  RowScan* scan_;  ///< null unless rows come from a source
  std::vector<TaskSums> tasks_;
  std::mutex mutex_;
  std::atomic<bool> wrong_ = false;
  PassResult result_;
};

}  // namespace

bool has_exact_pass(const CompareInput& input, const Setup& setup) {
  constexpr double kFinest = 0x1p-25;  // of which FP32 holds numbers in ulps
  constexpr double kMostVariance = 1e-9;
  const FormatConstants& format = setup.format;
  const ModelConstants& model = setup.model;
  const double most_ulps = 2 / format.fraction_scale;
  const bool is_whole = input.sample == nullptr || input.sample->all();
  const bool has_yardsticks = !input.magnitude.empty() || !input.deviation.empty() || !input.terms.empty();
  const bool is_relative = model.bound_absolute == 0 && model.var_absolute == 0 && !model.coherent;
  return setup.exact && is_whole && !has_yardsticks && is_relative && !model.have_plan && !model.terms &&
         !setup.lattice.asked && input.outside.empty() && input.row_slopes.empty() && setup.output_scale == 1 &&
         input.port->role == op::Role::output && !format.integer && format.fraction_scale >= kFinest &&
         model.var_value * most_ulps * most_ulps <= kMostVariance && input.port->elements() != 0;
}

std::optional<PassResult> run_exact_pass(const CompareInput& input, const Setup& setup, RowScan* scan) {
  return ExactPass(input, setup, scan).run();
}

}  // namespace numcheck::metric
