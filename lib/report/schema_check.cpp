#include "report/schema_check.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"

namespace numcheck::report {

using nlohmann::json;

namespace {

using MaybeViolation = std::optional<SchemaViolation>;

/// Prefixes the violation's path with `key`.
MaybeViolation prefixed(std::string_view key, MaybeViolation found) {
  if (found.has_value()) {
    found->path = found->path.empty() ? std::string(key) : fmt::format("{}/{}", key, found->path);
  }
  return found;
}

/// A bit for each type, as a number that is whole is of two.
constexpr std::array<std::string_view, 7> kTypes = {"object", "array",  "string", "boolean",
                                                    "null",   "number", "integer"};

unsigned bit_of(std::string_view type) {
  return 1U << static_cast<unsigned>(std::ranges::find(kTypes, type) - kTypes.begin());
}

unsigned bits_of(const json& value) {
  constexpr unsigned kNumber = 1U << 5U, kInteger = 1U << 6U;
  return value.is_object()           ? 1U
         : value.is_array()          ? 1U << 1U
         : value.is_string()         ? 1U << 2U
         : value.is_boolean()        ? 1U << 3U
         : value.is_null()           ? 1U << 4U
         : value.is_number_integer() ? kNumber | kInteger
                                     : kNumber;
}

/// The JSON library compares numbers from 2^63 on, such as seeds, as if they were negative.
bool is_less(const json& value, const json& minimum) {
  const bool is_huge = value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX;
  return !is_huge && value < minimum;
}

bool is_hexadecimal(std::string_view digits) {
  return !digits.empty() && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_digest(std::string_view text) {
  constexpr std::size_t kDigits = 32;
  return text.size() == kDigits && is_hexadecimal(text);
}

bool is_bits(std::string_view text) {
  return text.starts_with("0x") && is_hexadecimal(text.substr(2));
}

/// An architecture, "sm_90".
bool is_architecture(std::string_view text) {
  return text.starts_with("sm_") && text.size() > 3 &&
         text.substr(3).find_first_not_of("0123456789") == std::string_view::npos;
}

/// Readers look at versions themselves, before they look at anything else.
bool is_anything(std::string_view) {
  return true;
}

struct Pattern {
  std::string_view text;
  bool (*matches)(std::string_view);
};
constexpr std::array kPatterns = {Pattern{"^[0-9a-f]{32}$", &is_digest}, Pattern{"^0x[0-9a-f]+$", &is_bits},
                                  Pattern{"^sm_[0-9]+$", &is_architecture},
                                  Pattern{R"(^1\.[0-9]+\.[0-9]+$)", &is_anything}};

/// Keywords that say nothing about what is valid, or that are for other checkers.
constexpr std::array<std::string_view, 10> kIgnored = {"$id",      "$schema",     "$comment", "title", "description",
                                                       "examples", "definitions", "if",       "then",  "else"};

}  // namespace

struct SchemaChecker::Rule {
  std::vector<std::string> types;  ///< for messages
  unsigned type_bits = ~0U;
  std::vector<std::string> required;
  json words;  ///< array of the allowed values; null: any
  json minimum;
  std::size_t min_items = 0, max_items = SIZE_MAX;
  bool (*matches)(std::string_view) = nullptr;
  std::map<std::string, const Rule*, std::less<>> properties;
  const Rule* others = nullptr;
  const Rule* items = nullptr;
  std::vector<const Rule*> any, all;
};

/// One walk over a value.
class SchemaChecker::Pass {
 public:
  explicit Pass(Strictness strictness) : strictness_(strictness) {}

  [[nodiscard]] MaybeViolation check(const json& value, const Rule& rule) const {
    if (MaybeViolation found = check_itself(value, rule)) {
      return found;
    }
    for (const Rule* one : rule.all) {
      if (MaybeViolation found = check(value, *one)) {
        return found;
      }
    }
    if (!rule.any.empty() &&
        std::ranges::none_of(rule.any, [&](const Rule* one) { return !check(value, *one).has_value(); })) {
      return SchemaViolation{"", "matches none of the allowed forms"};
    }
    return value.is_object() ? check_members(value, rule) : value.is_array() ? check_items(value, rule) : std::nullopt;
  }

 private:
  [[nodiscard]] MaybeViolation check_itself(const json& value, const Rule& rule) const {
    if ((bits_of(value) & rule.type_bits) == 0) {
      return SchemaViolation{"", fmt::format("is not of type {}", fmt::join(rule.types, " or "))};
    }
    if (rule.words.is_array() && strictness_ != Strictness::types &&
        std::ranges::find(rule.words, value) == rule.words.end()) {
      return SchemaViolation{"", "has an invalid value"};
    }
    if (!rule.minimum.is_null() && value.is_number() && is_less(value, rule.minimum)) {
      return SchemaViolation{"", "is too small"};
    }
    if (rule.matches != nullptr && value.is_string() && !rule.matches(value.get_ref<const std::string&>())) {
      return SchemaViolation{"", "has an invalid value"};
    }
    return std::nullopt;
  }

  [[nodiscard]] MaybeViolation check_members(const json& value, const Rule& rule) const {
    if (strictness_ == Strictness::everything) {
      const auto missing =
          std::ranges::find_if(rule.required, [&value](const std::string& key) { return !value.contains(key); });
      if (missing != rule.required.end()) {
        return SchemaViolation{*missing, "is missing"};
      }
    }
    if (rule.properties.empty() && rule.others == nullptr) {
      return std::nullopt;
    }
    for (auto member = value.begin(); member != value.end(); ++member) {
      const auto property = rule.properties.find(member.key());
      const Rule* own = property == rule.properties.end() ? rule.others : property->second;
      if (MaybeViolation found = own == nullptr ? std::nullopt : check(*member, *own)) {
        return prefixed(member.key(), std::move(found));
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] MaybeViolation check_items(const json& value, const Rule& rule) const {
    if (value.size() < rule.min_items || value.size() > rule.max_items) {
      return SchemaViolation{"", value.size() < rule.min_items ? "has too few items" : "has too many items"};
    }
    for (std::size_t i = 0; rule.items != nullptr && i < value.size(); ++i) {
      if (MaybeViolation found = check(value[i], *rule.items)) {
        return prefixed(std::to_string(i), std::move(found));
      }
    }
    return std::nullopt;
  }

  Strictness strictness_;
};

std::string SchemaViolation::sentence(std::string_view whole) const {
  return fmt::format("{} {}", path.empty() ? whole : std::string_view(path), message);
}

SchemaChecker::SchemaChecker(json schema) : schema_(std::move(schema)) {
  if (const auto definitions = schema_.find("definitions"); definitions != schema_.end()) {
    for (auto one = definitions->begin(); one != definitions->end(); ++one) {
      definition(one.key());
    }
  }
  root_ = compile(schema_);
}

SchemaChecker::Rule* SchemaChecker::definition(const std::string& name) {
  if (const auto known = definitions_.find(name); known != definitions_.end()) {
    return known->second;
  }
  Rule* rule = definitions_[name] =
      rules_.emplace_back(std::make_shared<Rule>()).get();  // before its members, which may refer to it
  for (const auto& [keyword, wanted] : schema_.at("definitions").at(name).items()) {
    compile_keyword(*rule, keyword, wanted);
  }
  return rule;
}

SchemaChecker::Rule* SchemaChecker::compile(const json& rule) {
  Rule& compiled = *rules_.emplace_back(std::make_shared<Rule>());
  for (const auto& [keyword, wanted] : rule.items()) {
    compile_keyword(compiled, keyword, wanted);
  }
  return &compiled;
}

void SchemaChecker::compile_keyword(Rule& compiled, const std::string& keyword, const json& wanted) {
  if (keyword == "type") {
    compiled.types =
        wanted.is_array() ? wanted.get<std::vector<std::string>>() : std::vector{wanted.get<std::string>()};
    compiled.type_bits = 0;
    for (const std::string& type : compiled.types) {
      compiled.type_bits |= bit_of(type);
    }
  } else if (keyword == "required") {
    compiled.required = wanted.get<std::vector<std::string>>();
  } else if (keyword == "enum") {
    compiled.words = wanted;
  } else if (keyword == "const") {
    compiled.words = json::array({wanted});
  } else if (keyword == "minimum") {
    compiled.minimum = wanted;
  } else if (keyword == "minItems") {
    compiled.min_items = wanted.get<std::size_t>();
  } else if (keyword == "maxItems") {
    compiled.max_items = wanted.get<std::size_t>();
  } else if (keyword == "properties") {
    for (const auto& [name, rule] : wanted.items()) {
      compiled.properties[name] = compile(rule);
    }
  } else if (keyword == "additionalProperties" && wanted.is_object()) {
    compiled.others = compile(wanted);
  } else if (keyword == "items") {
    compiled.items = compile(wanted);
  } else if (keyword == "oneOf" || keyword == "anyOf" || keyword == "allOf") {
    for (const json& one : wanted) {
      (keyword == "allOf" ? compiled.all : compiled.any).push_back(compile(one));
    }
  } else if (keyword == "$ref") {
    constexpr std::size_t kPrefix = std::string_view("#/definitions/").size();
    compiled.all.push_back(definition(wanted.get_ref<const std::string&>().substr(kPrefix)));
  } else if (keyword == "pattern") {
    const auto known = std::ranges::find(kPatterns, wanted.get_ref<const std::string&>(), &Pattern::text);
    if (known == kPatterns.end()) {
      throw core::InternalError(fmt::format("the pattern {} of a schema is not supported", wanted.dump()));
    }
    compiled.matches = known->matches;
  } else if (std::ranges::find(kIgnored, keyword) == kIgnored.end()) {
    throw core::InternalError(fmt::format("the keyword {} of a schema is not supported", keyword));
  }
}

MaybeViolation SchemaChecker::check(const json& value, Strictness strictness) const {
  return Pass(strictness).check(value, *root_);
}

MaybeViolation SchemaChecker::check_as(const std::string& definition, const json& value, Strictness strictness) const {
  return Pass(strictness).check(value, *definitions_.at(definition));
}

}  // namespace numcheck::report
