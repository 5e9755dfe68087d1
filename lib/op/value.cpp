#include "op/value.hpp"

#include <array>
#include <charconv>

#include "core/strings.hpp"

namespace numcheck::op {

std::string value_text(const Value& value) {
  struct Text {
    std::string operator()(bool truth) const { return truth ? "1" : "0"; }
    std::string operator()(std::int64_t integer) const { return std::to_string(integer); }
    std::string operator()(double number) const { return core::shortest(number); }
    std::string operator()(core::InternedString text) const { return text.str(); }
  };
  return std::visit(Text{}, value);
}

void append_text(const Value& value, std::string& text) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    std::array<char, 24> digits;
    text.append(digits.data(), std::to_chars(digits.begin(), digits.end(), *integer).ptr);
  } else {
    text += value_text(value);
  }
}

std::string param_text(const Value& value) {
  const bool* const truth = std::get_if<bool>(&value);
  return truth == nullptr ? value_text(value) : *truth ? "true" : "false";
}

}  // namespace numcheck::op
