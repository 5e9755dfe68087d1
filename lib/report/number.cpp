#include "report/number.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace numcheck::report {

nlohmann::json number(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "Infinity" : "-Infinity";
  }
  return value;
}

double number_value(const nlohmann::json& json) {
  if (json.is_number()) {
    return json.get<double>();
  }
  if (json == "Infinity") {
    return std::numeric_limits<double>::infinity();
  }
  if (json == "-Infinity") {
    return -std::numeric_limits<double>::infinity();
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace numcheck::report
