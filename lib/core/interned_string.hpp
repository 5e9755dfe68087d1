// Strings that occur many times and are kept once.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace numcheck::core {

/// An immutable string that is interned: equal ones share one copy, which lives as long as the process. One takes 8 bytes,
/// is copied like an integer and compared by address. For words that a program meets again and again, such as the choices
/// of a parameter, not for texts that grow in number with the input. All functions may be called by several threads.
class InternedString {
 public:
  /// The empty string.
  InternedString();
  /// Looks the text up among all interned strings, and adds it if it is new. Strings convert, as they do to std::string.
  template <std::convertible_to<std::string_view> Text>
  InternedString(const Text& text) : text_(find_or_add(text)) {}

  [[nodiscard]] const std::string& str() const noexcept { return *text_; }

  friend bool operator==(InternedString, InternedString) noexcept = default;
  /// With a string that is not interned, and is not to be.
  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(InternedString a, const Text& b) noexcept {
    return *a.text_ == std::string_view(b);
  }

 private:
  static const std::string* find_or_add(std::string_view text);

  const std::string* text_;  ///< never null
};

}  // namespace numcheck::core
