#include "reference/broken_elements.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype.hpp"

namespace numcheck::reference {
namespace {

bool is_broken(double got, double y, double largest) {
  const bool overflows = std::isfinite(y) && std::fabs(y) > largest;
  if (std::isnan(got)) {
    return !std::isnan(y) && !overflows;
  }
  if (std::isinf(got)) {
    return !(std::isinf(y) || overflows) || std::signbit(got) != std::signbit(y);
  }
  return std::isnan(y) || std::isinf(y);
}

}  // namespace

std::vector<BrokenElement> broken_elements(const op::FindingRequest& request, Epilogue epilogue) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const op::Delivered& output = request.outputs[0];
  const op::OutputValues& expected = request.expected->outputs.at(0);
  const double largest = core::dtype_info(output.dtype).max_finite / output.scale;
  std::vector<BrokenElement> found;
  for (std::size_t n = 0; n < expected.value.size(); ++n) {
    const std::int64_t at = request.sample->all() ? static_cast<std::int64_t>(n) : request.sample->indices[n];
    const double got = output.value[static_cast<std::size_t>(at)];
    const double y = expected.value[n];
    const bool twice_overflows = epilogue == Epilogue::gelu && y > kLargest / 2 && std::isinf(got) && got > 0;
    if (is_broken(got, y, largest) && !twice_overflows) {
      found.push_back({at, got});
    }
  }
  return found;
}

double explained_share(const std::vector<BrokenElement>& broken,
                       const std::function<bool(const BrokenElement&)>& explains) {
  constexpr std::size_t kMost = 4096;
  std::size_t looked_at = 0, explained = 0;
  for (std::size_t i = 0; i < broken.size(); i += 1 + broken.size() / kMost) {
    ++looked_at;
    explained += explains(broken[i]) ? 1 : 0;
  }
  return looked_at == 0 ? 0 : static_cast<double>(explained) / static_cast<double>(looked_at);
}

}  // namespace numcheck::reference
