// Where the cases of a report lie in its text, found without parsing them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::report {

/// Half-open, in bytes from the start of the text.
struct TextRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Takes the text in pieces. It follows strings and brackets only: whether the parts are JSON is for their parser to say.
class CaseRanges {
 public:
  void take(std::string_view piece);

  /// The text without the elements of its list "cases".
  [[nodiscard]] const std::string& head() const noexcept { return head_; }
  [[nodiscard]] const std::vector<TextRange>& cases() const noexcept { return cases_; }
  /// Levels of lists and objects.
  [[nodiscard]] std::size_t depth() const noexcept { return deepest_; }
  /// The text has one list "cases", whose elements are objects or lists with commas between them.
  [[nodiscard]] bool sound() const noexcept { return sound_ && lists_ == 1; }

 private:
  void take_structure(char c);
  void begin_case();
  void end_case();

  std::string head_;
  std::vector<TextRange> cases_;
  std::string key_;  ///< the last string at the top level, as far as it matters
  std::uint64_t at_ = 0;
  std::size_t depth_ = 0, deepest_ = 0;
  int lists_ = 0;
  bool in_string_ = false, escaped_ = false;
  bool in_cases_ = false;
  bool after_key_ = false;    ///< a colon has followed key_
  bool wants_comma_ = false;  ///< the last thing in the list was a case
  bool wants_case_ = false;   ///< the last thing in the list was a comma
  bool sound_ = true;
};

}  // namespace numcheck::report
