#include "annotations.hpp"

#include <fmt/format.h>

#include "core/printable.hpp"

namespace numcheck::app {
namespace {

/// Escapes % and newlines for workflow commands; in properties, also ':' and ','.
std::string escaped(std::string_view text, bool property) {
  std::string result;
  for (const char letter : text) {
    if (letter == '%') {
      result += "%25";
    } else if (letter == '\n') {
      result += "%0A";
    } else if (letter == '\r') {
      result += "%0D";
    } else if (property && letter == ':') {
      result += "%3A";
    } else if (property && letter == ',') {
      result += "%2C";
    } else {
      result += letter;
    }
  }
  return result;
}

std::string_view level(plan::Severity severity) {
  switch (severity) {
    case plan::Severity::error:
      return "error";
    case plan::Severity::warning:
      return "warning";
    case plan::Severity::note:
      return "notice";
  }
  return "error";
}

}  // namespace

std::string annotation(std::string_view text, const std::vector<std::string>& notes) {
  std::string lines = core::printable(text);
  for (const std::string& note : notes) {
    lines += "\n" + core::printable(note);
  }
  return "::error::" + escaped(lines, false) + "\n";
}

std::string annotation(const plan::Diagnostic& diagnostic) {
  std::string place;
  if (!diagnostic.file.empty()) {
    place = " file=" + escaped(core::printable(diagnostic.file), true);
    if (diagnostic.line > 0) {
      place += fmt::format(",line={},col={}", diagnostic.line, diagnostic.column);
    }
  }
  const std::string hint = diagnostic.hint.empty() ? "" : " (" + diagnostic.hint + ")";
  return fmt::format("::{}{}::{}\n", level(diagnostic.severity), place,
                     escaped(core::printable(diagnostic.text + hint), false));
}

}  // namespace numcheck::app
