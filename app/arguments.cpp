#include "arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/strings.hpp"

namespace numcheck::app {

std::uint64_t parse_count(std::string_view text, std::string_view option, std::uint64_t minimum,
                          std::uint64_t maximum) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < minimum || value > maximum) {
    throw core::UsageError(
        fmt::format("{}: \"{}\" is not a whole number from {} to {}", option, text, minimum, maximum));
  }
  return value;
}

double parse_number(std::string_view text, std::string_view option, double minimum, double maximum) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= minimum && value <= maximum)) {
    throw core::UsageError(fmt::format("{}: \"{}\" is not a number from {} to {}", option, text, minimum, maximum));
  }
  return value;
}

double parse_time_s(std::string_view text, std::string_view option, double maximum_s) {
  const double value = core::parse_duration_s(text, option);
  if (!(value > 0) || value > maximum_s) {
    throw core::UsageError(
        fmt::format("{}: \"{}\" is not a time greater than 0 and at most {}h", option, text, maximum_s / 3600));
  }
  return value;
}

std::vector<std::string> split_lists(const std::vector<std::string>& values, std::string_view option) {
  std::vector<std::string> list;
  for (const std::string& value : values) {
    for (std::string& part : core::split(value, ',')) {
      if (part.empty()) {
        throw core::UsageError(
            fmt::format("{}: \"{}\" has an empty entry; separate names with single commas", option, value));
      }
      list.push_back(std::move(part));
    }
  }
  return list;
}

std::string_view set_by(std::string_view value, std::string_view option, const char* variable) {
  const char* set = std::getenv(variable);
  return set != nullptr && set == value ? std::string_view(variable) : option;
}

void require_known(std::string_view word, std::string_view what, const std::vector<std::string_view>& legal) {
  if (std::ranges::find(legal, word) != legal.end()) {
    return;
  }
  const std::string_view nearest = core::nearest_name(word, legal);
  throw core::UsageError(fmt::format("unknown {} \"{}\"{}; choose from: {}", what, word,
                                     nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                                     fmt::join(legal, ", ")));
}

}  // namespace numcheck::app
