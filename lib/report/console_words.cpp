#include "report/console_words.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/strings.hpp"
#include "report/number.hpp"

namespace numcheck::report {

std::string short_number(const nlohmann::json& json, std::string_view specification) {
  if (json.is_string()) {
    return json.get<std::string>();
  }
  const double value = number_value(json);
  return fmt::format(fmt::runtime("{:" + std::string(specification) + "}"), value);
}

std::string ratio_text(const nlohmann::json& json) {
  constexpr double kLarge = 1000;  // beyond it digits after the point say nothing
  return short_number(json, number_value(json) < kLarge ? ".2f" : ".2e");
}

std::string human_time(double seconds) {
  if (!(seconds > 0) || std::isinf(seconds)) {
    return "-";
  }
  if (seconds < 1e-3) {
    return fmt::format("{:.1f} us", seconds * 1e6);
  }
  if (seconds < 1) {
    return fmt::format("{:.1f} ms", seconds * 1e3);
  }
  if (seconds < 120) {
    return fmt::format(fmt::runtime(seconds < 10 ? "{:.1f} s" : "{:.0f} s"), seconds);
  }
  const auto whole = static_cast<long long>(std::llround(seconds));
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string parameters_of(std::string_view id) {
  const std::vector<std::string> parts = core::split(id, '/');
  std::string text = parts.size() > 1 ? parts[1] : std::string(id);
  for (std::size_t i = 4; i < parts.size(); ++i) {
    text += "/" + parts[i];
  }
  return text;
}

Colour status_colour(std::string_view status) noexcept {
  if (status == "pass") {
    return Colour::green;
  }
  if (status == "fail" || status == "xpass" || status == "error" || status == "crashed" || status == "timeout") {
    return Colour::red;
  }
  return Colour::yellow;
}

}  // namespace numcheck::report
