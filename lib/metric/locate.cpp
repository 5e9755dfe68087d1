// Where wrong elements lie.
#include <algorithm>
#include <cstring>
#include <iterator>

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

std::optional<WrongTiles> tiles_of(std::span<const std::uint8_t> wrong, const op::Port& port) {
  TileCounts counts(port, kSmallestTile);
  for_each_marked(wrong, [&](std::size_t at) {
    const auto flat = static_cast<std::int64_t>(at);
    const std::int64_t row = flat / port.cols;
    counts.add(row / port.rows, row % port.rows, flat % port.cols, 1);
  });
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
  std::vector<std::uint8_t> matrices(static_cast<std::size_t>(port.batch));
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(port.rows));
  std::vector<std::uint8_t> columns(static_cast<std::size_t>(port.cols));
  for_each_marked(wrong, [&](std::size_t at) {
    ++found.count;
    const std::int64_t flat = sample.all() ? static_cast<std::int64_t>(at) : sample.indices[at];
    const std::int64_t row = flat / port.cols;
    matrices[static_cast<std::size_t>(row / port.rows)] = 1;
    rows[static_cast<std::size_t>(row % port.rows)] = 1;
    columns[static_cast<std::size_t>(flat % port.cols)] = 1;
  });
  found.matrices = lines_of(matrices);
  found.rows = lines_of(rows);
  found.columns = lines_of(columns);
  if (sample.all() && found.count > 0 && found.count < found.of) {
    found.tiles = tiles_of(wrong, port);
  }
  return found;
}

}  // namespace numcheck::metric
