#include "verdict/farthest_elements.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "verdict/root_mean_square.hpp"

namespace numcheck::verdict {
namespace {

/// Keeps the largest of many numbers, with their indices.
class Largest {
 public:
  void add(double number, std::size_t index) {
    constexpr std::size_t kKept = 64;
    if (kept_.size() == kKept && number <= kept_.front().first) {
      return;
    }
    if (kept_.size() == kKept) {
      std::ranges::pop_heap(kept_, kSmallestFirst);
      kept_.pop_back();
    }
    kept_.emplace_back(number, static_cast<std::int64_t>(index));
    std::ranges::push_heap(kept_, kSmallestFirst);
  }
  void append_to(std::vector<std::int64_t>& indices) const {
    for (const auto& [number, index] : kept_) {
      indices.push_back(index);
    }
  }

 private:
  static constexpr std::ranges::greater kSmallestFirst = {};
  std::vector<std::pair<double, std::int64_t>> kept_;  // a heap
};

}  // namespace

std::vector<std::int64_t> farthest_elements(std::span<const double> expected, const op::Port& port,
                                            const std::function<double(std::size_t)>& stored) {
  if (expected.size() != static_cast<std::size_t>(port.elements())) {
    return {};
  }
  const auto cols = static_cast<std::size_t>(std::max<std::int64_t>(1, port.cols));
  Largest off, off_in_row;
  for (std::size_t begin = 0; begin < expected.size(); begin += cols) {
    const std::size_t end = std::min(begin + cols, expected.size());
    const double rms = root_mean_square(expected.subspan(begin, end - begin));
    for (std::size_t i = begin; i < end; ++i) {
      const double error = std::abs(stored(i) - expected[i]);
      if (std::isfinite(error)) {
        off.add(error, i);
        off_in_row.add(rms > 0 ? error / rms : 0, i);
      }
    }
  }
  std::vector<std::int64_t> farthest;
  off.append_to(farthest);
  off_in_row.append_to(farthest);
  std::ranges::sort(farthest);
  const auto repeated = std::ranges::unique(farthest);
  farthest.erase(repeated.begin(), repeated.end());
  return farthest;
}

}  // namespace numcheck::verdict
