// Parameter values and their descriptions: one `describe` list per op yields decoder, schema, identifier and docs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/interned_string.hpp"

namespace numcheck::op {

/// Value of one parameter. Choices are strings, interned because a plan may have a million cases with the same few.
using Value = std::variant<bool, std::int64_t, double, core::InternedString>;

enum class FieldKind { boolean, integer, number, choice };

/// Description of one parameter, as the plan, the schema, the identifier and `explain` see it.
struct Field {
  std::string_view name;  ///< key in the plan: "trans_b"
  std::string_view tag;   ///< key in the identifier: "tb"
  FieldKind kind = FieldKind::integer;
  std::string_view doc;
  Value fallback;  ///< value if the plan gives none (ignored if `required`)
  bool required = false;
  double minimum = 0;                     ///< inclusive, integers and numbers
  double maximum = 0;                     ///< inclusive
  std::vector<std::string_view> choices;  ///< empty, of kind choice: any text
  /// True if the field changes where or how results are stored or accumulated, but not the exact value: cases that
  /// differ only in such fields share one reference. Except where an output has block scales: there the reference
  /// consists of the codes' values.
  bool storage_only = false;
};

/// Values of all fields, in the order of the descriptor's fields.
using Params = std::vector<Value>;

/// A value as identifiers and keys spell it: "1", "768", "0.5", "gelu".
[[nodiscard]] std::string value_text(const Value& value);
/// Appends that.
void append_text(const Value& value, std::string& text);
/// As --param and a plan spell it: that, but "true" and "false".
[[nodiscard]] std::string param_text(const Value& value);

}  // namespace numcheck::op
