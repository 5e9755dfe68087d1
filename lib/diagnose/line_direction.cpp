#include "diagnose/line_direction.hpp"

#include <algorithm>
#include <cstdint>

namespace numcheck::diagnose {

std::vector<Direction> directions(const Evidence& evidence) {
  const op::Port port = port_of(evidence);
  const auto rows = static_cast<std::size_t>(port.batch * port.rows), cols = static_cast<std::size_t>(port.cols);
  constexpr std::size_t kShortest = 16;
  std::vector<Direction> all;
  if (evidence.sample.all() && cols >= kShortest && rows > 1) {
    all.push_back({"row", rows, cols, cols, 1});
  }
  if (evidence.sample.all() && rows >= kShortest && cols > 1) {
    all.push_back({"column", cols, rows, 1, cols});
  }
  const std::size_t heads = static_cast<std::size_t>(std::max<std::int64_t>(1, port.heads)), width = cols / heads;
  if (evidence.sample.all() && heads > 1 && width >= kShortest && rows > 1) {
    all.push_back({"row", rows * heads, width, width, 1, heads});
  }
  return all;
}

}  // namespace numcheck::diagnose
