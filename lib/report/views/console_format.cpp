#include "report/views/console_format.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/strings.hpp"
#include "report/number.hpp"
#include "report/report.hpp"

namespace numcheck::report::views {

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

std::string margin_text(const std::optional<double>& margin, std::string_view without_ratio) {
  if (!margin.has_value()) {
    return "-";
  }
  return std::isinf(*margin) && !without_ratio.empty() ? std::string(without_ratio) : ratio_text(number(*margin));
}

std::string upper(std::string_view word) {
  std::string text(word);
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return text;
}

std::vector<std::string> digests_of(const nlohmann::json& cases) {
  std::vector<std::string> all;
  for (const nlohmann::json& record : cases) {
    all.push_back(record.at("digest").get<std::string>());
  }
  return short_digests(all);
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

std::string notice_of_simulated(int sm) {
  return fmt::format("SIMULATED sm_{}: no hardware evidence", sm);
}

}  // namespace numcheck::report::views
