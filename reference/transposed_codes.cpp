#include "reference/transposed_codes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace numcheck::reference {
namespace {

bool is_same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

}  // namespace

std::vector<op::Finding> judge_transpose(const op::FindingRequest& request, std::string_view port,
                                         std::string_view transposed, std::size_t cols) {
  const auto codes = std::ranges::find(request.outputs, port, &op::Delivered::port);
  const auto copies = std::ranges::find(request.outputs, transposed, &op::Delivered::port);
  if (codes == request.outputs.end() || copies == request.outputs.end()) {
    return {};
  }
  const std::size_t rows = cols == 0 ? 0 : codes->value.size() / cols;
  double different = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) {
      different += is_same(codes->value[i * cols + j], copies->value[j * rows + i]) ? 0 : 1;
    }
  }
  return {{std::string(kTransposedCodes.name), std::string(transposed), different, 0,
           "codes that differ from those of " + std::string(port) + ", bit for bit"}};
}

}  // namespace numcheck::reference
