#include "reference/special_rows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace numcheck::reference {

bool is_special(double x) {
  return !(std::fabs(x) < kRoundsToInfinity);
}

std::vector<bool> special_rows(const HeadRows& rows, std::int64_t count, std::int64_t channels) {
  std::vector<bool> special(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double* row = rows.data + i * rows.stride;
    special[static_cast<std::size_t>(i)] = std::any_of(row, row + channels, is_special);
  }
  return special;
}

bool SpecialRows::any() const {
  const auto in = [](const std::vector<bool>& rows) { return std::ranges::any_of(rows, std::identity()); };
  return others || in(queries) || in(keys) || in(values) || in(gradient) || in(output);
}

}  // namespace numcheck::reference
