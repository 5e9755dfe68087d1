#include "plan/diagnostic.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/printable.hpp"
#include "plan/source.hpp"

namespace numcheck::plan {
namespace {

const char* severity_name(Severity severity) noexcept {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "error";
}

struct WidthRange {
  std::uint32_t first;
  std::uint32_t last;
  std::size_t cells;
};

// Blocks whose characters occupy zero or two cells, from Unicode's EastAsianWidth.txt (whole blocks only).
constexpr std::array kWidths = {
    WidthRange{0x0300, 0x036F, 0}, WidthRange{0x1100, 0x115F, 2},   WidthRange{0x200B, 0x200F, 0},
    WidthRange{0x2E80, 0xA4CF, 2}, WidthRange{0xAC00, 0xD7A3, 2},   WidthRange{0xF900, 0xFAFF, 2},
    WidthRange{0xFE00, 0xFE0F, 0}, WidthRange{0xFE30, 0xFE6F, 2},   WidthRange{0xFF00, 0xFF60, 2},
    WidthRange{0xFFE0, 0xFFE6, 2}, WidthRange{0x1F300, 0x1FAFF, 2}, WidthRange{0x20000, 0x3FFFD, 2},
};

/// Terminal cells of a printable text.
std::size_t cells(std::string_view text) {
  std::size_t total = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text, at));
    const std::uint32_t point = core::code_point(text.substr(at, length));
    const auto* range =
        std::ranges::find_if(kWidths, [&](const WidthRange& r) { return point >= r.first && point <= r.last; });
    total += range == kWidths.end() ? 1 : range->cells;
    at += length;
  }
  return total;
}

/// Where the code point after the first `count` begins.
std::size_t offset_of(std::string_view line, std::size_t count) {
  std::size_t at = 0;
  for (; count > 0 && at < line.size(); --count) {
    at += std::max<std::size_t>(1, utf8_length(line, at));
  }
  return at;
}

/// The source line and the caret below it. The parts of the line are made printable separately, so that the caret is in
/// the right place however long the escapes before it are.
std::string quoted_source(const Diagnostic& diagnostic) {
  const std::string_view line = diagnostic.source_line;
  const std::size_t caret = offset_of(line, diagnostic.caret_column - 1);
  const std::string_view rest = line.substr(caret);
  const std::string before = core::printable(line.substr(0, caret));
  const std::string marked = core::printable(rest.substr(0, offset_of(rest, diagnostic.caret_length)));
  const std::string after = core::printable(rest.substr(offset_of(rest, diagnostic.caret_length)));
  const std::size_t tail = std::max<std::size_t>(1, cells(marked)) - 1;
  return fmt::format("{:>5} |{}{}{}{}\n{:>5} | {}^{}\n", diagnostic.line, line.empty() ? "" : " ", before, marked,
                     after, "", std::string(cells(before), ' '), std::string(tail, '~'));
}

std::string render_all(const std::vector<Diagnostic>& diagnostics) {
  std::string all;
  for (const Diagnostic& diagnostic : diagnostics) {
    all += render(diagnostic);
  }
  return all;
}

std::string summarise(std::size_t shown, std::size_t found) {
  std::string text = fmt::format("{} error{}", found, found == 1 ? "" : "s");
  if (found > shown) {
    text += fmt::format(" (the first {} are shown)", shown);
  }
  return text + "; nothing was run";
}

}  // namespace

std::string Place::text() const {
  return file.empty() ? "" : fmt::format("{}:{}:{}", file, line, column);
}

std::string render(const Diagnostic& diagnostic) {
  std::string out = core::printable(diagnostic.file);
  if (diagnostic.line != 0) {
    out += fmt::format(":{}:{}", diagnostic.line, diagnostic.column);
  }
  if (!out.empty()) {
    out += ": ";
  }
  out += fmt::format("{}: {}\n", severity_name(diagnostic.severity), core::printable(diagnostic.text));
  if (diagnostic.line != 0 && diagnostic.caret_column != 0) {
    out += quoted_source(diagnostic);
  }
  if (!diagnostic.hint.empty()) {
    out += fmt::format("   hint: {}\n", core::printable(diagnostic.hint));
  }
  if (!diagnostic.note.empty()) {
    out += fmt::format("   note: {}\n", core::printable(diagnostic.note));
  }
  if (!diagnostic.pointer.empty()) {
    out += fmt::format("   at {}\n", core::printable(diagnostic.pointer));
  }
  return out;
}

PlanError::PlanError(std::vector<Diagnostic> diagnostics, std::size_t found)
    : core::Error(core::ExitCode::usage,
                  render_all(diagnostics) + summarise(diagnostics.size(), std::max(found, diagnostics.size()))),
      diagnostics_(std::move(diagnostics)),
      found_(std::max(found, diagnostics_.size())) {}

std::string PlanError::summary() const {
  return summarise(diagnostics_.size(), found_);
}

}  // namespace numcheck::plan
