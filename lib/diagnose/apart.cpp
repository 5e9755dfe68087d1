#include "diagnose/apart.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace numcheck::diagnose {

std::vector<Apart> apart(const Subject& a, const Subject& b) {
  std::vector<Apart> all;
  for (const auto& [port, bytes] : a.outputs) {
    if (!b.outputs.contains(port)) {
      continue;
    }
    const core::Buffer<double> x = delivered_numbers(a, port), y = delivered_numbers(b, port);
    if (x.size() != y.size()) {
      throw core::UsageError(
          fmt::format("{} has {} elements in one file and {} in the other: they are of different shapes", port,
                      x.size(), y.size()));
    }
    Apart found{.port = port, .elements = x.size()};
    double square = 0, squares = 0;
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) {
        squares += std::isfinite(y[i]) ? y[i] * y[i] : 0;
        continue;
      }
      ++found.different;
      if (std::isfinite(x[i]) && std::isfinite(y[i])) {
        square += (x[i] - y[i]) * (x[i] - y[i]);
        squares += y[i] * y[i];
        found.largest = std::max(found.largest, std::abs(x[i] - y[i]));
      }
    }
    found.rel_l2 = square == 0 ? 0 : std::sqrt(square / squares);
    all.push_back(found);
  }
  return all;
}

nlohmann::json apart_json(const std::vector<Apart>& all) {
  nlohmann::json list = nlohmann::json::array();
  for (const Apart& one : all) {
    list.push_back({{"output", one.port},
                    {"elements", one.elements},
                    {"different", one.different},
                    {"rel_l2", std::isfinite(one.rel_l2) ? nlohmann::json(one.rel_l2) : nlohmann::json()},
                    {"max_abs", one.largest}});
  }
  return list;
}

}  // namespace numcheck::diagnose
