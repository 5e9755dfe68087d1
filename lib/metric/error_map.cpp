#include "metric/error_map.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/parallel.hpp"
#include "metric/reader.hpp"
#include "metric/setup.hpp"

namespace numcheck::metric {
namespace {

/// The map has few parts, whatever the size of the output: each is as large as the map itself.
constexpr std::size_t kParts = 64;

std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

std::int64_t cell_extent(std::int64_t elements) {
  std::int64_t extent = 1;
  while (divide_up(elements, extent) > ErrorMap::kMaxCells) {
    extent *= 2;
  }
  return extent;
}

ErrorMap empty_map(const op::Port& port) {
  ErrorMap map;
  map.rows = port.batch * port.rows;
  map.cols = port.cols;
  map.cell_rows = cell_extent(map.rows);
  map.cell_cols = cell_extent(map.cols);
  map.down = divide_up(map.rows, map.cell_rows);
  map.across = divide_up(map.cols, map.cell_cols);
  map.cells.resize(static_cast<std::size_t>(map.down * map.across));
  return map;
}

/// Sums of a part of the elements.
struct Tally {
  MapCell cell;
  double error = 0;
  std::uint64_t finite = 0;

  void add(const ComparedElement& element) {
    ++cell.compared;
    cell.unwritten = cell.unwritten || element.unwritten;
    cell.mismatch = cell.mismatch || element.mismatch;
    if (element.finite) {
      ++finite;
      error += element.error;
      cell.over_bound = std::max(cell.over_bound, std::abs(element.error) / element.bound);
    }
  }
  void merge(const Tally& other) {
    cell.compared += other.cell.compared;
    cell.unwritten = cell.unwritten || other.cell.unwritten;
    cell.mismatch = cell.mismatch || other.cell.mismatch;
    cell.over_bound = std::max(cell.over_bound, other.cell.over_bound);
    error += other.error;
    finite += other.finite;
  }
};

}  // namespace

ErrorMap error_map(const CompareInput& input) {
  validate(input);
  const Setup setup = make_setup(input);
  ErrorMap map = empty_map(*input.port);
  const std::size_t count = compared_elements(input);
  const std::size_t chunk = std::max<std::size_t>(kSegment, (count + kParts - 1) / kParts);
  std::vector<std::vector<Tally>> parts((count + chunk - 1) / chunk);
  core::parallel_chunks(count, chunk, [&](std::size_t part, std::size_t begin, std::size_t end) {
    parts[part].resize(map.cells.size());
    for_each_element(input, setup, begin, end, [&](std::size_t, const ComparedElement& element) {
      const std::int64_t row = element.index / map.cols / map.cell_rows;
      const std::int64_t column = element.index % map.cols / map.cell_cols;
      parts[part][static_cast<std::size_t>(row * map.across + column)].add(element);
    });
  });
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    Tally all;
    for (const std::vector<Tally>& part : parts) {
      all.merge(part[i]);
    }
    map.cells[i] = all.cell;
    map.cells[i].mean_error = all.finite == 0 ? 0 : all.error / static_cast<double>(all.finite);
  }
  return map;
}

}  // namespace numcheck::metric
