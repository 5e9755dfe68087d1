// Checks JSON from a file against a schema of ours, fast enough for reports of 100 000 cases.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace numcheck::report {

/// What is wrong in a value, and where.
struct SchemaViolation {
  std::string path;  ///< "runs/0/device_s"; empty: the value itself
  std::string message;

  /// "runs/0/device_s is missing"; `whole` names the value itself.
  [[nodiscard]] std::string sentence(std::string_view whole) const;
};

/// How much of a schema is enforced. Files of other minor versions lack members, or have words that this one does not know.
enum class Strictness : std::uint8_t { types, words, everything };

/// A schema, compiled. Implements the subset of JSON Schema that our own schemas use, but for if, then and else. Throws
/// core::InternalError if one uses more.
class SchemaChecker {
 public:
  explicit SchemaChecker(nlohmann::json schema);
  SchemaChecker(const SchemaChecker&) = delete;
  SchemaChecker& operator=(const SchemaChecker&) = delete;
  ~SchemaChecker() = default;

  /// The first violation, or nothing.
  [[nodiscard]] std::optional<SchemaViolation> check(const nlohmann::json& value, Strictness strictness) const;
  /// The same against one of the schema's definitions.
  [[nodiscard]] std::optional<SchemaViolation> check_as(const std::string& definition, const nlohmann::json& value,
                                                        Strictness strictness) const;

 private:
  struct Rule;
  class Pass;

  Rule* compile(const nlohmann::json& rule);
  void compile_keyword(Rule& compiled, const std::string& keyword, const nlohmann::json& wanted);
  Rule* definition(const std::string& name);

  nlohmann::json schema_;
  std::vector<std::shared_ptr<Rule>> rules_;
  std::map<std::string, Rule*> definitions_;
  Rule* root_ = nullptr;
};

}  // namespace numcheck::report
