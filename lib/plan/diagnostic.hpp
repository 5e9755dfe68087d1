// What is wrong with a plan: where, what, and how to fix it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace numcheck::plan {

/// A position in a file: of an entry, a value.
struct Place {
  std::string file;        ///< as the user wrote it; empty: nowhere
  std::size_t line = 0;    ///< 1-based
  std::size_t column = 0;  ///< 1-based, in code points

  /// "plan.json:14:16"; empty without a file.
  [[nodiscard]] std::string text() const;
};

enum class Severity { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  std::string file;        ///< as the user wrote it
  std::size_t line = 0;    ///< 1-based; 0 if there is no position
  std::size_t column = 0;  ///< 1-based, in code points
  std::string text;
  std::string source_line;       ///< the offending line as written, tabs as spaces; cut around the column if very long
  std::size_t caret_column = 0;  ///< 1-based code point of `source_line` where the caret starts; 0: no caret
  std::size_t caret_length = 1;  ///< in code points
  std::string hint;              ///< "did you mean \"bf16\"? ..."
  std::string note;              ///< a further fact: "first given at plan.json:3:5"
  std::string pointer;           ///< JSON pointer
};

/// GNU form with source line, caret, hint and pointer, as in interface.md section 7. Every field is made printable:
/// newlines are the only control characters.
[[nodiscard]] std::string render(const Diagnostic& diagnostic);

/// The most mistakes that a PlanError carries.
inline constexpr std::size_t kMaxDiagnostics = 20;

/// A plan that cannot be used; carries every mistake found (at most kMaxDiagnostics). what() consists of all of them,
/// rendered, and the summary line.
class PlanError : public core::Error {
 public:
  /// `found`: how many mistakes there were, if more than it carries.
  explicit PlanError(std::vector<Diagnostic> diagnostics, std::size_t found = 0);
  [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const noexcept { return diagnostics_; }
  [[nodiscard]] std::size_t found() const noexcept { return found_; }
  /// "2 errors; nothing was run".
  [[nodiscard]] std::string summary() const;

 private:
  std::vector<Diagnostic> diagnostics_;
  std::size_t found_;
};

}  // namespace numcheck::plan
