#include "metric/pass.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "core/parallel.hpp"
#include "metric/grid.hpp"
#include "metric/kernels.hpp"
#include "metric/merge.hpp"

namespace numcheck::metric {
namespace {

constexpr std::size_t kFlatChunk = std::size_t{1} << 16;

/// Sums of one task of the grid.
struct TaskSums {
  Accumulators sums{};
  SpecialCounts specials;
  double a = 0, b = 0;

  TaskSums() { sums.plan_over_bound = std::numeric_limits<double>::infinity(); }
};

/// Of the columns of a segment.
struct ColumnSums {
  float *a = nullptr, *b = nullptr, *z = nullptr;
};

/// Sums over the rows of a tile of the grid so far; those of the groups' tiles, over the rows that these share.
struct TileColumns {
  std::vector<float> a = std::vector<float>(Grid::kTileColumns + kLanes, 0.0F);
  std::vector<float> b = a;
  std::vector<float> z = a;
  std::array<double, Grid::kTileColumns / kTileSide> tiles{};
};

/// What a task works with.
struct Worker {
  Worker(const CompareInput& input, const Setup& given, const Kernels& loops, TaskSums& sums)
      : setup(given), kernels(loops), task(sums), reader(input, given) {}

  const Setup& setup;
  const Kernels& kernels;
  TaskSums& task;
  SegmentReader reader;
  Histograms histograms{};
  std::array<float, kSegmentRoom> unused_a{};  ///< column sums that nobody needs
  std::array<float, kSegmentRoom> unused_b{};
  std::array<float, kSegmentRoom> unused_z{};
  std::array<float, kSegment / kBlock> block_z{};  ///< of the last segment
  std::int64_t rows_end = 0;                       ///< of the rows that are there
  Residuals residuals;

  /// One segment through all kernels; sums of columns have room for a padded segment, or are null.
  RowSums add(std::int64_t first, std::size_t count, std::int64_t next, ColumnSums columns) {
    SegmentView view = reader.read(first, count, next);
    if (!kernels.norms(view, setup.format, false, task.sums)) {
      kernels.opinions(view, setup.format, setup.model, task.sums);
      view = reader.without_specials(view, first, count);
      view.opinions_counted = true;
      (void)kernels.norms(view, setup.format, true, task.sums);
    }
    view.column_a = columns.a == nullptr ? unused_a.data() : columns.a;
    view.column_b = columns.b == nullptr ? unused_b.data() : columns.b;
    view.column_z = columns.z == nullptr ? unused_z.data() : columns.z;
    view.block_z = block_z.data();
    const RowSums row = kernels.gates(view, setup.format, setup.model, task.sums, histograms);
    task.a += row.a;
    task.b += row.b;
    if (setup.lattice.asked) {
      kernels.lattice(view, setup.format, setup.lattice, task.sums.lattice);
    }
    if (setup.format.narrow && !setup.format.integer && is_looked_at(first, setup.residual_stride)) {
      residuals.add(view, setup.dtype);
    }
    if (setup.model.terms && is_looked_at(first, setup.terms.stride)) {
      kernels.terms(view, setup.model, setup.terms, task.sums.terms);
    }
    return row;
  }

  /// Makes the row and those that follow it, up to `end`, unless they are there. Of rows from a source.
  void require(std::int64_t row, std::int64_t end, const CompareInput& input, RowScan& scan) {
    if (row < rows_end) {
      return;
    }
    rows_end = std::min(end, row + input.source->rows_at_a_time());
    ExpectedRows rows = input.source->rows(row, rows_end - row);
    scan.add(rows);
    reader.take(std::move(rows), row * input.port->cols);
  }

  /// One segment of `stride`, wherever it lies.
  [[nodiscard]] static bool is_looked_at(std::int64_t first, std::uint64_t stride) {
    constexpr std::uint64_t kGoldenRatio = 0x9e37'79b9'7f4a'7c15;
    return (static_cast<std::uint64_t>(first / kSegment) * kGoldenRatio >> 32) % stride == 0;
  }
};

/// The pass over one output: sampled, of rows from a source, in tiles, or flat.
class Pass {
 public:
  Pass(const CompareInput& input, const Setup& setup, RowScan* scan)
      : input_(input), shape_(clustered_shape(*input.port)), setup_(setup), kernels_(kernels()), scan_(scan) {}

  PassResult run() {
    const bool sampled = input_.sample != nullptr && !input_.sample->all();
    const op::Port& port = shape_;
    if (sampled) {
      run_sampled();
    } else if (scan_ != nullptr) {
      run_rows();
    } else if (port.rows >= kFewestClusters && port.cols >= kFewestClusters) {
      run_tiles();
    } else {
      run_flat(static_cast<std::size_t>(port.elements()), nullptr, nullptr);
      finish(0, 0, 0);
    }
    return std::move(result_);
  }

 private:
  void collect(Worker& worker) {
    worker.task.specials = worker.reader.specials();
    const std::scoped_lock lock(mutex_);
    for (const auto& copy : worker.histograms.spread) {
      std::transform(std::begin(copy), std::end(copy), result_.spread.begin(), result_.spread.begin(), std::plus<>());
    }
    result_.residuals.add(worker.residuals);
    const auto& ulps = worker.histograms.ulps;
    std::transform(std::begin(ulps), std::end(ulps), result_.ulps.begin(), result_.ulps.begin(), std::plus<>());
  }

  void merge_tasks() {
    result_.sums.plan_over_bound = std::numeric_limits<double>::infinity();
    for (const TaskSums& task : tasks_) {
      merge(result_.sums, task.sums);
      merge(result_.specials, task.specials);
      result_.slope_totals.a += task.a;
      result_.slope_totals.b += task.b;
    }
    // The kernels count errors of zero in bin 1.
    const std::uint64_t compared = std::accumulate(result_.ulps.begin(), result_.ulps.end(), std::uint64_t{0});
    const std::uint64_t zeros = compared - total_of(result_.sums.arithmetic.nonzero);
    result_.ulps[0] += zeros;
    result_.ulps[1] -= zeros;
    const GateSums& gates = result_.sums.gates;
    result_.slope_totals.aa = total_of(gates.aa);
    result_.slope_totals.ab = total_of(gates.ab);
    result_.slope_totals.bb = total_of(gates.bb);
    result_.slope = result_.slope_totals.b > 0 ? result_.slope_totals.a / result_.slope_totals.b : 0;
  }

  /// `cluster` is the number of elements per row or column, whichever is larger; 0 if there are too few of these.
  void finish(double rows, double columns, double cluster) {
    const double infinity = std::numeric_limits<double>::infinity();
    const SlopeTotals& totals = result_.slope_totals;
    result_.slope_error = cluster > 0 ? clustered_error(totals, rows, columns, result_.slope) : infinity;
    // Of short outputs, errors that move none of them to another number are not part of the slope.
    const double alike = setup_.format.narrow ? total_of(result_.sums.flips.alike) / totals.b : 1;
    result_.slope_predicted = cluster > 0 && totals.b > 0 ? std::sqrt(cluster * alike / totals.b) : infinity;
  }

  /// Elements in order, regardless of rows; a and b per element go to the arrays unless they are null.
  void run_flat(std::size_t count, float* a, float* b) {
    tasks_.resize((count + kFlatChunk - 1) / kFlatChunk);
    core::parallel_chunks(count, kFlatChunk, [&](std::size_t index, std::size_t begin, std::size_t end) {
      const auto worker = std::make_unique<Worker>(input_, setup_, kernels_, tasks_[index]);
      for (std::size_t at = begin; at < end; at += kSegment) {
        const auto first = static_cast<std::int64_t>(at);
        worker->add(first, std::min<std::size_t>(kSegment, end - at), first + kSegment,
                    {.a = a == nullptr ? nullptr : a + at, .b = b == nullptr ? nullptr : b + at});
      }
      collect(*worker);
    });
    merge_tasks();
  }

  void run_sampled() {
    const std::size_t count = input_.sample->indices.size();
    std::vector<float> a(count + kLanes);
    std::vector<float> b(count + kLanes);
    run_flat(count, a.data(), b.data());
    const std::vector<double> wide_a(a.begin(), a.end());
    const std::vector<double> wide_b(b.begin(), b.end());
    const SampleClusters clusters = cluster_sample(*input_.sample, shape_, wide_a.data(), wide_b.data(), result_.slope);
    finish(clusters.rows, clusters.columns, clusters.cluster);
  }

  /// A row of a tile of the grid.
  void run_row(Worker& worker, const Tile& tile, std::int64_t row, TileColumns& columns) {
    const op::Port& port = shape_;
    RowSums sums{};
    double z = 0;
    for (std::int64_t c = tile.column_begin; c < tile.column_end; c += kSegment) {
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kSegment, tile.column_end - c));
      const std::int64_t offset = c - tile.column_begin;
      const bool last = c + kSegment >= tile.column_end;
      const std::int64_t next = last ? (row + 1) * port.cols + tile.column_begin : row * port.cols + c + kSegment;
      const RowSums part =
          worker.add(row * port.cols + c, count, next,
                     {.a = columns.a.data() + offset, .b = columns.b.data() + offset, .z = columns.z.data() + offset});
      sums.a += part.a;
      sums.b += part.b;
      for (std::size_t block = 0; block * kBlock < count; ++block) {
        const auto value = static_cast<double>(worker.block_z[block]);
        z += value;
        columns.tiles[static_cast<std::size_t>(offset) / kBlock + block] += value;
      }
    }
    const std::size_t at = static_cast<std::size_t>(tile.column_block) * rows_.clusters + static_cast<std::size_t>(row);
    rows_.a[at] = sums.a;
    rows_.b[at] = sums.b;
    rows_.z[at] = z;
  }

  void run_tile(Worker& worker, const Tile& tile) {
    const op::Port& port = shape_;
    TileColumns columns;
    for (std::int64_t r = tile.row_begin; r < tile.row_end; ++r) {
      run_row(worker, tile, tile.batch * port.rows + r, columns);
      if ((r + 1) % kTileSide == 0 || r + 1 == tile.row_end) {
        tiles_.take(columns.tiles, {tile.batch, r / kTileSide, tile.column_begin / kTileSide});
      }
    }
    keep_columns(tile, columns);
  }

  void keep_columns(const Tile& tile, const TileColumns& columns) {
    const op::Port& port = shape_;
    const auto width = tile.column_end - tile.column_begin;
    const std::size_t at = static_cast<std::size_t>(tile.row_block) * columns_.clusters +
                           static_cast<std::size_t>(tile.batch * port.cols + tile.column_begin);
    const auto move = [&](const std::vector<float>& from, std::vector<double>& to) {
      std::copy_n(from.begin(), width, to.begin() + static_cast<std::ptrdiff_t>(at));
    };
    move(columns.a, columns_.a);
    move(columns.b, columns_.b);
    move(columns.z, columns_.z);
  }

  /// All tiles of a block of rows, a row at a time.
  void run_block(Worker& worker, const Grid& grid, std::int64_t first_tile) {
    std::vector<Tile> tiles;
    std::vector<TileColumns> columns(static_cast<std::size_t>(grid.column_blocks()));
    for (std::int64_t t = 0; t < grid.column_blocks(); ++t) {
      tiles.push_back(grid.tile(first_tile + t));
    }
    const Tile& any = tiles.front();
    const std::int64_t top = any.batch * shape_.rows;
    for (std::int64_t r = any.row_begin; r < any.row_end; ++r) {
      worker.require(top + r, top + any.row_end, input_, *scan_);
      for (std::size_t t = 0; t < tiles.size(); ++t) {
        run_row(worker, tiles[t], top + r, columns[t]);
        if ((r + 1) % kTileSide == 0 || r + 1 == any.row_end) {
          tiles_.take(columns[t].tiles, {any.batch, r / kTileSide, tiles[t].column_begin / kTileSide});
        }
      }
    }
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      keep_columns(tiles[t], columns[t]);
    }
  }

  /// Rows of a source.
  void run_rows() {
    const Grid grid(shape_);
    prepare_grid(grid);
    const auto blocks = static_cast<std::size_t>(shape_.batch * grid.row_blocks());
    tasks_.resize(blocks);
    core::parallel_for(blocks, [&](std::size_t index) {
      const auto worker = std::make_unique<Worker>(input_, setup_, kernels_, tasks_[index]);
      run_block(*worker, grid, static_cast<std::int64_t>(index) * grid.column_blocks());
      collect(*worker);
    });
    finish_grid();
  }

  void prepare_grid(const Grid& grid) {
    const op::Port& port = shape_;
    rows_.resize(static_cast<std::size_t>(grid.column_blocks()), static_cast<std::size_t>(port.batch * port.rows));
    columns_.resize(static_cast<std::size_t>(grid.row_blocks()), static_cast<std::size_t>(port.batch * port.cols));
    tiles_ = TileSums(port);
  }

  void run_tiles() {
    const Grid grid(shape_);
    prepare_grid(grid);
    tasks_.resize(grid.tasks());
    core::parallel_for(grid.tasks(), [&](std::size_t index) {
      const auto worker = std::make_unique<Worker>(input_, setup_, kernels_, tasks_[index]);
      for (std::int64_t t = grid.first_tile(index); t < grid.last_tile(index); ++t) {
        run_tile(*worker, grid.tile(t));
      }
      collect(*worker);
    });
    finish_grid();
  }

  void finish_grid() {
    const op::Port& port = shape_;
    merge_tasks();
    result_.groups = largest_groups(input_, setup_, rows_, columns_, tiles_, total_of(result_.sums.gates.z2));
    result_.slope_clusters = std::min(rows_.effective_clusters(), columns_.effective_clusters());
    finish(rows_.squared_residuals(result_.slope), columns_.squared_residuals(result_.slope),
           static_cast<double>(std::max(port.rows, port.cols)));
  }

  const CompareInput& input_;
  const op::Port shape_;
  const Setup& setup_;
  const Kernels& kernels_;
  RowScan* scan_;  ///< null unless rows come from a source
  std::vector<TaskSums> tasks_;
  PartialSums rows_, columns_;
  TileSums tiles_;
  std::mutex mutex_;
  PassResult result_;
};

}  // namespace

PassResult run_pass(const CompareInput& input, const Setup& setup, RowScan* scan) {
  return Pass(input, setup, scan).run();
}

}  // namespace numcheck::metric
