#include "diagnose/apart.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace numcheck::diagnose {

namespace {

/// Precondition: they have the same size.
Apart compared(const std::string& port, std::span<const double> x, std::span<const double> y) {
  Apart found{.port = port, .elements = x.size()};
  double square = 0, squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
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
  return found;
}

}  // namespace

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
    all.push_back(compared(port, x.span(), y.span()));
  }
  return all;
}

std::vector<Apart> inputs_apart(const Subject& a, const Subject& b) {
  std::vector<Apart> all;
  for (const op::Port& port : a.c.op->ports(a.c.params, *a.c.mode)) {
    if (port.role != op::Role::input || !a.inputs.has(port) || !b.inputs.has(port)) {
      continue;
    }
    const prepare::SharedDoubles x = a.inputs.of(port), y = b.inputs.of(port);
    if (x == y || x->size() != y->size()) {
      continue;
    }
    if (Apart found = compared(std::string(port.name), x->span(), y->span()); found.different > 0) {
      all.push_back(std::move(found));
    }
  }
  return all;
}

nlohmann::json apart_json(const std::vector<Apart>& all, std::string_view key) {
  nlohmann::json list = nlohmann::json::array();
  for (const Apart& one : all) {
    list.push_back({{std::string(key), one.port},
                    {"elements", one.elements},
                    {"different", one.different},
                    {"rel_l2", std::isfinite(one.rel_l2) ? nlohmann::json(one.rel_l2) : nlohmann::json()},
                    {"max_abs", one.largest}});
  }
  return list;
}

}  // namespace numcheck::diagnose
