// What is wrong with a plan: where, what, and what would be right.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace numcheck::plan {

enum class Severity { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  std::string file;          ///< as the user wrote it
  std::size_t line = 0;      ///< 1-based; 0 if there is no position
  std::size_t column = 0;    ///< 1-based, in code points
  std::string text;
  std::string source_line;   ///< the offending line, shortened around the column if it is very long
  std::size_t caret_length = 1;
  std::string hint;          ///< "did you mean \"bf16\"? ..."
  std::string pointer;       ///< JSON pointer
};

/// GNU form with source line, caret, hint and pointer, as in interface.md section 7.
[[nodiscard]] std::string render(const Diagnostic& diagnostic);

/// A plan that cannot be used; carries every mistake that was found (at most 20).
class PlanError : public core::Error {
 public:
  explicit PlanError(std::vector<Diagnostic> diagnostics);
  [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const noexcept { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace numcheck::plan
