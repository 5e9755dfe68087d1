#include "machine/device.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::machine {
namespace {

constexpr std::array kSimulated = {80, 89, 90, 100};
constexpr int kMaxIndex = 1023;

std::optional<int> parse_number(std::string_view text, int maximum) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool digits = !text.empty() && text.front() >= '0' && text.front() <= '9';
  if (!digits || error != std::errc{} || end != text.data() + text.size() || value > maximum) {
    return std::nullopt;
  }
  return value;
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  std::string simulated;
  for (const int sm : kSimulated) {
    simulated += fmt::format(" sim:sm_{}", sm);
  }
  throw core::UsageError(
      fmt::format("device \"{}\": {}; use auto, cuda:N (N = 0, 1, ...) or one of{}", text, why, simulated));
}

DeviceChoice parse_cuda(std::string_view text, std::string_view number) {
  const auto index = parse_number(number, kMaxIndex);
  if (!index) {
    refuse(text, fmt::format("\"{}\" is not a device number from 0 to {}", number, kMaxIndex));
  }
  return {.kind = DeviceChoice::Kind::cuda, .index = *index};
}

DeviceChoice parse_simulated(std::string_view text, std::string_view architecture) {
  std::string_view number = architecture;
  if (number.starts_with("sm_")) {
    number.remove_prefix(3);
  }
  const auto sm = parse_number(number, 999);
  if (!sm || number == architecture) {
    refuse(text, fmt::format("\"{}\" is not an architecture such as sm_90", architecture));
  }
  if (std::find(kSimulated.begin(), kSimulated.end(), *sm) == kSimulated.end()) {
    refuse(text, fmt::format("there is no simulated sm_{}", *sm));
  }
  return {.kind = DeviceChoice::Kind::sim, .sm = *sm};
}

}  // namespace

std::span<const int> simulated_architectures() noexcept {
  return kSimulated;
}

std::string DeviceChoice::text() const {
  switch (kind) {
    case Kind::cuda:
      return fmt::format("cuda:{}", index);
    case Kind::sim:
      return fmt::format("sim:sm_{}", sm);
    case Kind::automatic:
      break;
  }
  return "auto";
}

DeviceChoice parse_device(std::string_view text) {
  if (text == "auto") {
    return {};
  }
  const auto colon = text.find(':');
  const std::string_view family = text.substr(0, colon);
  const bool bare = colon == std::string_view::npos;
  if (family == "cuda") {
    return bare ? DeviceChoice{.kind = DeviceChoice::Kind::cuda} : parse_cuda(text, text.substr(colon + 1));
  }
  if (family == "sim") {
    return bare ? DeviceChoice{.kind = DeviceChoice::Kind::sim} : parse_simulated(text, text.substr(colon + 1));
  }
  if (bare && parse_number(text, kMaxIndex)) {
    return parse_cuda(text, text);
  }
  refuse(text, "unknown device kind");
}

}  // namespace numcheck::machine
