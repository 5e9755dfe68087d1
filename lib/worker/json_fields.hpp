// Reading fields of untrusted JSON. Each function checks type and range and throws a ProtocolError naming the field.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "core/json_depth.hpp"
#include "worker/protocol.hpp"

namespace numcheck::worker::fields {

[[noreturn]] inline void reject(std::string_view key, std::string_view wanted) {
  throw ProtocolError(fmt::format("\"{}\" is not {}", key, wanted));
}

inline const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) {
    throw ProtocolError(fmt::format("\"{}\" is missing", key));
  }
  return *found;
}

inline const std::string& text(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  if (!value.is_string()) {
    reject(key, "a string");
  }
  return value.get_ref<const std::string&>();
}

inline bool boolean(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  if (!value.is_boolean()) {
    reject(key, "true or false");
  }
  return value.get<bool>();
}

inline std::uint64_t count(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  if (!value.is_number_unsigned()) {
    reject(key, "a non-negative integer");
  }
  return value.get<std::uint64_t>();
}

/// A non-negative integer that fits an int.
inline int small(const nlohmann::json& object, const char* key) {
  const std::uint64_t value = count(object, key);
  if (value > 0x7FFFFFFF) {
    reject(key, "an integer below 2^31");
  }
  return static_cast<int>(value);
}

/// A non-negative integer that fits an int64.
inline std::int64_t extent(const nlohmann::json& object, const char* key) {
  const std::uint64_t value = count(object, key);
  if (value > (std::uint64_t{1} << 62)) {
    reject(key, "an integer up to 2^62");
  }
  return static_cast<std::int64_t>(value);
}

inline double seconds(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) {
    reject(key, "a non-negative number");
  }
  return value.get<double>();
}

inline const nlohmann::json& list(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  if (!value.is_array()) {
    reject(key, "a list");
  }
  return value;
}

inline core::Digest digest(const nlohmann::json& object, const char* key) {
  const std::string& hex = text(object, key);
  if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
    reject(key, "a digest of 32 hexadecimal digits");
  }
  return {std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16), nullptr, 16)};
}

/// [["name", "value"], ...]
inline std::vector<std::pair<std::string, std::string>> pairs(const nlohmann::json& object, const char* key) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const nlohmann::json& item : list(object, key)) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_string()) {
      reject(key, "a list of pairs of strings");
    }
    result.emplace_back(item[0].get<std::string>(), item[1].get<std::string>());
  }
  return result;
}

/// Index of a name.
inline std::optional<std::size_t> position_of(std::span<const char* const> names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional<std::size_t>(found - names.begin());
}

/// A message as JSON.
inline nlohmann::json parse(std::string_view text) {
  if (core::nests_deeper(text)) {
    throw ProtocolError(fmt::format("it nests deeper than {} levels", core::kMaxJsonDepth));
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw ProtocolError(fmt::format("it is not JSON ({}): \"{}\"", printable(error.what(), 120), printable(text, 80)));
  }
}

/// JSON on one line; invalid UTF-8 is replaced.
inline std::string line(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace numcheck::worker::fields
