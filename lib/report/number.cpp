#include "report/number.hpp"

#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

std::string short_number(const nlohmann::json& json, std::string_view specification) {
  if (json.is_string()) {
    return json.get<std::string>();
  }
  const double value = number_value(json);
  return fmt::format(fmt::runtime("{:" + std::string(specification) + "}"), value);
}

std::string ratio_text(const nlohmann::json& json) {
  constexpr double kLarge = 1000;  // above it, decimals are meaningless
  if (json == "Infinity") {
    return "no ratio";
  }
  return short_number(json, number_value(json) < kLarge ? ".2f" : ".2e");
}

}  // namespace numcheck::report
