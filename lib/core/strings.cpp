#include "core/strings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::core {
namespace {

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

struct Quantity {
  double number = 0;
  std::string unit;  ///< lower case
  bool ok = false;
};

/// Digits with an optional fraction, then letters: no sign, exponent, space or "inf".
Quantity parse_quantity(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  Quantity quantity;
  quantity.unit = lowered(text.substr(end));
  const std::string_view digits = text.substr(0, end);
  if (digits.empty() || digits.front() == '.' || digits.back() == '.') {
    return quantity;
  }
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), quantity.number, std::chars_format::fixed);
  quantity.ok = error == std::errc() && stop == digits.data() + digits.size();
  return quantity;
}

struct Unit {
  std::string_view name;
  double factor;
};

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
  const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& unit) { return unit.name == name; });
  return found == units.end() ? nullptr : &*found;
}

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  const std::size_t width = right.size() + 1;
  std::vector<std::size_t> before(width), above(width), row(width);
  for (std::size_t j = 0; j < width; ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= left.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const bool same = left[i - 1] == right[j - 1];
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row.back();
}

namespace {

/// The shortest candidate that begins with the word: "layernorm_fwd" for "layernorm".
std::string_view continued_name(const std::string& lowered_word, std::span<const std::string_view> candidates) {
  constexpr std::size_t kFewestLetters = 3;
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    if (lowered_word.size() >= kFewestLetters && candidate.size() > lowered_word.size() &&
        lowered(candidate.substr(0, lowered_word.size())) == lowered_word &&
        (best.empty() || candidate.size() < best.size())) {
      best = candidate;
    }
  }
  return best;
}

}  // namespace

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string wanted = lowered(word);
  const std::size_t limit = std::max<std::size_t>(2, wanted.size() / 3);
  std::string_view best;
  std::size_t best_distance = limit + 1;
  for (const std::string_view candidate : candidates) {
    // The distance is at least the difference of the lengths; and the argument may be 100 kB long.
    const std::size_t longer = std::max(wanted.size(), candidate.size());
    if (longer - std::min(wanted.size(), candidate.size()) >= best_distance) {
      continue;
    }
    const std::size_t distance = edit_distance(wanted, lowered(candidate));
    // A name that shares no letter with the word is not a suggestion, however short both are.
    if (distance < best_distance && distance < std::max(wanted.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best.empty() ? continued_name(wanted, candidates) : best;
}

std::string shortest(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  std::array<char, 32> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    return fmt::format("{} B", bytes);
  }
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 would print as "1024.0".
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::uint64_t parse_bytes(std::string_view text, std::string_view what) {
  static constexpr std::array<Unit, 16> kUnits = {{{"", 1},
                                                   {"b", 1},
                                                   {"k", 0x1p10},
                                                   {"kib", 0x1p10},
                                                   {"kb", 1e3},
                                                   {"m", 0x1p20},
                                                   {"mib", 0x1p20},
                                                   {"mb", 1e6},
                                                   {"g", 0x1p30},
                                                   {"gib", 0x1p30},
                                                   {"gb", 1e9},
                                                   {"t", 0x1p40},
                                                   {"tib", 0x1p40},
                                                   {"tb", 1e12},
                                                   {"p", 0x1p50},
                                                   {"pib", 0x1p50}}};
  const Quantity quantity = parse_quantity(text);
  const Unit* unit = find_unit(kUnits, quantity.unit);
  if (!quantity.ok || unit == nullptr) {
    throw UsageError(fmt::format("{}: \"{}\" is not a number of bytes; write 1000, 64M, 1.5GiB or 2GB", what, text));
  }
  const auto factor = static_cast<std::uint64_t>(unit->factor);
  std::uint64_t whole = 0;
  std::uint64_t bytes = 0;
  const std::size_t digits = text.find_first_not_of("0123456789");
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), whole);
  const bool fraction = digits < text.size() && text[digits] == '.';
  if (!fraction && parsed.ec == std::errc() && !__builtin_mul_overflow(whole, factor, &bytes)) {
    return bytes;
  }
  const double rounded = std::floor(quantity.number * unit->factor);
  if (!fraction || rounded >= 0x1p64) {
    throw UsageError(fmt::format("{}: \"{}\" does not fit into 64 bits", what, text));
  }
  if (factor == 1) {
    throw UsageError(fmt::format("{}: \"{}\" is not a whole number of bytes", what, text));
  }
  return static_cast<std::uint64_t>(rounded);
}

double parse_duration_s(std::string_view text, std::string_view what) {
  static constexpr std::array<Unit, 4> kUnits = {{{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}}};
  const Quantity quantity = parse_quantity(text);
  const Unit* unit = find_unit(kUnits, quantity.unit);
  if (quantity.ok && quantity.unit.empty()) {
    throw UsageError(
        fmt::format("{}: \"{}\" has no unit; write {}s for seconds (units: ms, s, m, h)", what, text, text));
  }
  if (!quantity.ok || unit == nullptr) {
    throw UsageError(fmt::format("{}: \"{}\" is not a duration; write 500ms, 60s, 10m or 2h", what, text));
  }
  return unit->name == "ms" ? quantity.number / 1000 : quantity.number * unit->factor;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return pieces;
    }
    text.remove_prefix(end + 1);
  }
}

}  // namespace numcheck::core
