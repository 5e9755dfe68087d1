#include "report/record_shape.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/report.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

bool has_type(const json& value, std::string_view type) {
  return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
         (type == "null" && value.is_null()) || (type == "number" && value.is_number()) ||
         (type == "integer" && value.is_number_integer());
}

bool is_hexadecimal(std::string_view digits) {
  return !digits.empty() && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Supports only the patterns used in the schema of a case.
bool matches(std::string_view text, std::string_view pattern) {
  if (pattern == "^[0-9a-f]{32}$") {
    return text.size() == 32 && is_hexadecimal(text);
  }
  if (pattern == "^0x[0-9a-f]+$") {
    return text.starts_with("0x") && is_hexadecimal(text.substr(2));
  }
  throw core::InternalError(fmt::format("the pattern {} of the report's schema is not supported", pattern));
}

struct Violation {
  std::string path;  ///< "runs/0/device_s"
  std::string message;
};
using MaybeViolation = std::optional<Violation>;

/// Prefixes the violation's path with `key`.
MaybeViolation prefixed(std::string_view key, MaybeViolation found) {
  if (found.has_value()) {
    found->path = found->path.empty() ? std::string(key) : fmt::format("{}/{}", key, found->path);
  }
  return found;
}

/// Checks a keyword that applies to the value itself rather than its members.
MaybeViolation check_value(const json& value, const std::string& keyword, const json& wanted) {
  if (keyword == "type") {
    const auto fits = [&value](const json& type) { return has_type(value, type.get_ref<const std::string&>()); };
    if (wanted.is_array()) {
      const bool any = std::ranges::any_of(wanted, fits);
      return any ? MaybeViolation()
                 : Violation{
                       "", fmt::format("is not of type {}", fmt::join(wanted.get<std::vector<std::string>>(), " or "))};
    }
    return fits(wanted) ? MaybeViolation() : Violation{"", fmt::format("is not of type {}", wanted.get<std::string>())};
  }
  if (keyword == "required") {
    const auto missing = std::ranges::find_if(wanted, [&value](const json& key) {
      return value.is_object() && !value.contains(key.get_ref<const std::string&>());
    });
    return missing == wanted.end() ? MaybeViolation() : Violation{missing->get<std::string>(), "is missing"};
  }
  if (keyword == "enum") {
    return std::ranges::find(wanted, value) != wanted.end() ? MaybeViolation() : Violation{"", "has an invalid value"};
  }
  if (keyword == "minimum") {
    return !value.is_number() || value >= wanted ? MaybeViolation() : Violation{"", "is too small"};
  }
  if (keyword == "pattern") {
    const bool right =
        !value.is_string() || matches(value.get_ref<const std::string&>(), wanted.get_ref<const std::string&>());
    return right ? MaybeViolation() : Violation{"", "has an invalid value"};
  }
  if (keyword == "description" || keyword == "$comment") {
    return {};
  }
  throw core::InternalError(fmt::format("the keyword {} of the report's schema is not supported", keyword));
}

/// Implements the subset of JSON Schema that report_schema() uses. Returns the first violation, or nothing.
class Checker {
 public:
  explicit Checker(json schema) : schema_(std::move(schema)) {}

  [[nodiscard]] MaybeViolation check_as(const std::string& definition, const json& value) const {
    return check(value, schema_.at("definitions").at(definition));
  }

 private:
  [[nodiscard]] MaybeViolation check(const json& value, const json& rule) const {
    for (const auto& [keyword, wanted] : rule.items()) {
      if (MaybeViolation found = check(value, rule, keyword, wanted)) {
        return found;
      }
    }
    return {};
  }

  [[nodiscard]] MaybeViolation check(const json& value, const json& rule, const std::string& keyword,
                                     const json& wanted) const {
    if (keyword == "$ref") {
      constexpr std::size_t kPrefix = std::string_view("#/definitions/").size();
      return check_as(wanted.get_ref<const std::string&>().substr(kPrefix), value);
    }
    if (keyword == "properties") {
      return check_properties(value, wanted);
    }
    if (keyword == "additionalProperties") {
      return check_others(value, rule, wanted);
    }
    if (keyword == "items") {
      return check_items(value, wanted);
    }
    if (keyword == "oneOf" || keyword == "anyOf") {
      const bool any = std::ranges::any_of(wanted, [&](const json& one) { return !check(value, one).has_value(); });
      return any ? MaybeViolation() : Violation{"", "matches none of the allowed forms"};
    }
    if (keyword == "allOf") {
      for (const json& one : wanted) {
        if (MaybeViolation found = check(value, one)) {
          return found;
        }
      }
      return {};
    }
    return check_value(value, keyword, wanted);
  }

  [[nodiscard]] MaybeViolation check_properties(const json& value, const json& properties) const {
    for (auto property = properties.begin(); value.is_object() && property != properties.end(); ++property) {
      const auto member = value.find(property.key());
      if (member != value.end()) {
        if (MaybeViolation found = prefixed(property.key(), check(*member, *property))) {
          return found;
        }
      }
    }
    return {};
  }

  [[nodiscard]] MaybeViolation check_others(const json& value, const json& rule, const json& other) const {
    const auto properties = rule.find("properties");
    for (auto member = value.begin(); value.is_object() && member != value.end(); ++member) {
      if (properties == rule.end() || !properties->contains(member.key())) {
        if (MaybeViolation found = prefixed(member.key(), check(*member, other))) {
          return found;
        }
      }
    }
    return {};
  }

  [[nodiscard]] MaybeViolation check_items(const json& value, const json& rule) const {
    for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
      if (MaybeViolation found = prefixed(std::to_string(i), check(value[i], rule))) {
        return found;
      }
    }
    return {};
  }

  json schema_;
};

}  // namespace

std::string record_error(const nlohmann::json& record) {
  static const Checker checker(report_schema());
  const MaybeViolation found = checker.check_as("case", record);
  return found.has_value() ? fmt::format("{} {}", found->path.empty() ? "the record" : found->path, found->message)
                           : "";
}

}  // namespace numcheck::report
