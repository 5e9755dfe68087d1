// Where wrong elements lie.
#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "core/parallel.hpp"
#include "metric/wrong_elements.hpp"

namespace numcheck::metric {
namespace {

/// Calls `add` with the position in `wrong` of every marked element.
template <class Add>
void for_each_marked(std::span<const std::uint8_t> wrong, const Add& add) {
  for (std::size_t at = 0; at < wrong.size(); ++at) {
    const void* found = std::memchr(wrong.data() + at, 1, wrong.size() - at);
    if (found == nullptr) {
      return;
    }
    at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - wrong.data());
    add(at);
  }
}

WrongLines lines_of(const std::vector<std::uint8_t>& touched) {
  WrongLines lines;
  lines.of = std::ssize(touched);
  WrongLines::Range previous;
  bool regular = true;
  for (auto at = touched.begin(); (at = std::find(at, touched.end(), 1)) != touched.end();) {
    const auto end = std::find(at, touched.end(), 0);
    const WrongLines::Range range{at - touched.begin(), end - touched.begin() - 1};
    lines.touched += range.last - range.first + 1;
    const std::int64_t step = range.first - previous.first;
    if (lines.range_count > 0) {
      regular = regular && range.last - previous.last == step && (lines.range_count == 1 || step == lines.step);
      lines.step = step;
    }
    if (lines.ranges.size() < kRangesKept) {
      lines.ranges.push_back(range);
    }
    ++lines.range_count;
    previous = range;
    at = end;
  }
  constexpr std::int64_t kFewestRegular = 3;
  lines.step = regular && lines.range_count >= kFewestRegular ? lines.step : 0;
  return lines;
}

constexpr std::int64_t kSmallestTile = 16, kLargestTile = 128;

/// Counts of wrong elements per tile.
class TileCounts {
 public:
  TileCounts(const op::Port& port, std::int64_t size)
      : size_(size),
        rows_(port.rows),
        cols_(port.cols),
        down_((port.rows + size - 1) / size),
        across_((port.cols + size - 1) / size),
        counts_(static_cast<std::size_t>(port.batch * down_ * across_)) {}

  void add(std::int64_t matrix, std::int64_t row, std::int64_t column, std::int64_t count) {
    counts_[static_cast<std::size_t>((matrix * down_ + row / size_) * across_ + column / size_)] += count;
  }

  /// Bands of `size` rows, of all matrices, do not share counts.
  [[nodiscard]] std::int64_t bands() const { return std::ssize(counts_) / std::max<std::int64_t>(across_, 1); }

  /// The same counts in tiles of twice the size.
  [[nodiscard]] TileCounts doubled(const op::Port& port) const {
    TileCounts larger(port, 2 * size_);
    for_each([&larger](std::int64_t matrix, std::int64_t row, std::int64_t column, std::int64_t count) {
      larger.add(matrix, row, column, count);
    });
    return larger;
  }

  /// The tiles, if those that are touched are nearly all wrong, and others are not touched. Some elements of a wrong tile
  /// may be right by accident.
  [[nodiscard]] std::optional<WrongTiles> tiles() const {
    constexpr double kNearlyAll = 0.9;
    WrongTiles found{.size = size_, .touched = 0, .of = std::ssize(counts_)};
    double wrong = 0, area = 0;
    for_each([&](std::int64_t matrix, std::int64_t row, std::int64_t column, std::int64_t count) {
      if (count > 0) {
        wrong += static_cast<double>(count);
        area += static_cast<double>(std::min(size_, rows_ - row) * std::min(size_, cols_ - column));
        found.first = found.touched == 0 ? std::array{matrix, row, column} : found.first;
        ++found.touched;
      }
    });
    const bool fits = found.touched > 0 && found.touched < found.of && wrong >= kNearlyAll * area;
    return fits ? std::optional(found) : std::nullopt;
  }

 private:
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const auto flat = static_cast<std::int64_t>(i);
      visit(flat / across_ / down_, flat / across_ % down_ * size_, flat % across_ * size_, counts_[i]);
    }
  }

  std::int64_t size_, rows_, cols_, down_, across_;
  std::vector<std::int64_t> counts_;
};

/// Where the marks of an output lie.
struct Touched {
  explicit Touched(const op::Port& port)
      : matrices(static_cast<std::size_t>(port.batch)),
        rows(static_cast<std::size_t>(port.rows)),
        columns(static_cast<std::size_t>(port.cols)) {}

  std::vector<std::uint8_t> matrices, rows, columns;
  std::uint64_t count = 0;
};

/// Of any elements.
Touched touched_by(std::span<const std::uint8_t> wrong, const op::Port& port, const op::Sample& sample) {
  Touched found(port);
  for_each_marked(wrong, [&](std::size_t at) {
    ++found.count;
    const std::int64_t flat = sample.all() ? static_cast<std::int64_t>(at) : sample.indices[at];
    const std::int64_t row = flat / port.cols;
    found.matrices[static_cast<std::size_t>(row / port.rows)] = 1;
    found.rows[static_cast<std::size_t>(row % port.rows)] = 1;
    found.columns[static_cast<std::size_t>(flat % port.cols)] = 1;
  });
  return found;
}

/// Of all elements, with their counts per tile of the smallest size.
Touched touched_by(std::span<const std::uint8_t> wrong, const op::Port& port, TileCounts& counts) {
  Touched found(port);
  const auto bands = static_cast<std::size_t>(counts.bands());
  // Each task has marks of its own for every row and column, which must not cost more than the elements.
  constexpr std::size_t kMostTasks = 64;
  const std::size_t lines = found.matrices.size() + found.rows.size() + found.columns.size();
  const std::size_t tasks = std::clamp<std::size_t>(wrong.size() / lines, 1, kMostTasks);
  const std::int64_t per_matrix = counts.bands() / std::max<std::int64_t>(port.batch, 1);
  std::mutex mutex;
  core::parallel_chunks(bands, (bands + tasks - 1) / tasks, [&](std::size_t, std::size_t begin, std::size_t end) {
    Touched here(port);
    for (auto band = static_cast<std::int64_t>(begin); std::cmp_less(band, end); ++band) {
      const std::int64_t matrix = band / per_matrix, top = band % per_matrix * kSmallestTile;
      for (std::int64_t row = top; row < std::min(top + kSmallestTile, port.rows); ++row) {
        const auto line = wrong.subspan(static_cast<std::size_t>((matrix * port.rows + row) * port.cols),
                                        static_cast<std::size_t>(port.cols));
        for (std::int64_t column = 0; column < port.cols; column += kSmallestTile) {
          const auto part = static_cast<std::size_t>(std::min(kSmallestTile, port.cols - column));
          int sum = 0;
          for (std::size_t i = 0; i < part; ++i) {
            sum += line[static_cast<std::size_t>(column) + i];
            here.columns[static_cast<std::size_t>(column) + i] |= line[static_cast<std::size_t>(column) + i];
          }
          if (sum > 0) {
            here.matrices[static_cast<std::size_t>(matrix)] = here.rows[static_cast<std::size_t>(row)] = 1;
            here.count += static_cast<std::uint64_t>(sum);
            counts.add(matrix, row, column, sum);
          }
        }
      }
    }
    const std::scoped_lock lock(mutex);
    const auto merge = [](std::vector<std::uint8_t>& to, const std::vector<std::uint8_t>& from) {
      std::ranges::transform(to, from, to.begin(), std::bit_or<>());
    };
    merge(found.matrices, here.matrices);
    merge(found.rows, here.rows);
    merge(found.columns, here.columns);
    found.count += here.count;
  });
  return found;
}

std::optional<WrongTiles> tiles_of(TileCounts counts, const op::Port& port) {
  std::optional<WrongTiles> found = counts.tiles();
  for (std::int64_t size = kSmallestTile; size < kLargestTile; size *= 2) {
    counts = counts.doubled(port);
    if (const std::optional<WrongTiles> larger = counts.tiles()) {
      found = larger;
    }
  }
  return found;
}

}  // namespace

WrongElements locate(std::span<const std::uint8_t> wrong, const op::Port& port, const op::Sample& sample) {
  WrongElements found;
  found.of = wrong.size();
  if (port.elements() == 0) {
    return found;
  }
  const bool is_whole = sample.all() && std::cmp_equal(wrong.size(), port.elements());
  std::optional<TileCounts> counts;
  if (is_whole) {
    counts.emplace(port, kSmallestTile);
  }
  const Touched touched = is_whole ? touched_by(wrong, port, *counts) : touched_by(wrong, port, sample);
  found.count = touched.count;
  found.matrices = lines_of(touched.matrices);
  found.rows = lines_of(touched.rows);
  found.columns = lines_of(touched.columns);
  if (is_whole && found.count > 0 && found.count < found.of) {
    found.tiles = tiles_of(*std::move(counts), port);
  }
  return found;
}

}  // namespace numcheck::metric
