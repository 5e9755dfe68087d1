#include "annotations.hpp"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/printable.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::app {
namespace {

constexpr std::size_t kMaxAnnotations = 10;
constexpr std::size_t kMaxText = 1000;  ///< characters of a message

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

std::string failure_annotations(const nlohmann::json& report) {
  static const std::set<std::string> failures = {"fail", "xpass", "error", "crashed", "timeout"};
  std::string text;
  std::size_t found = 0;
  for (const nlohmann::json& record : report.at("cases")) {
    const std::string& status = record.at("status").get_ref<const std::string&>();
    if (!failures.contains(status) || ++found >= kMaxAnnotations) {
      continue;
    }
    const std::string lines = fmt::format(
        "{} #{}\n{}\nrun again: {}", core::printable(record.at("id").get<std::string>()),
        record.at("digest").get<std::string>().substr(0, 8), core::printable(record.at("reason").get<std::string>()),
        core::printable(record.value("reproduce", "te-numcheck run PLAN --case")));
    text += fmt::format("::error title=te-numcheck{} {}::{}\n", escaped(":", true), status,
                        escaped(report::views::cut_middle(lines, kMaxText), false));
  }
  if (found >= kMaxAnnotations) {
    text += fmt::format("::error title=te-numcheck::{} more cases failed; the report has all of them\n",
                        found - kMaxAnnotations + 1);
  }
  return text;
}

}  // namespace numcheck::app
