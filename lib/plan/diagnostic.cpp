#include "plan/diagnostic.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

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

std::uint32_t code_point(std::string_view sequence) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(sequence[i])); };
  switch (sequence.size()) {
    case 2:
      return (byte(0) & 0x1FU) << 6 | (byte(1) & 0x3FU);
    case 3:
      return (byte(0) & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
    case 4:
      return (byte(0) & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 | (byte(3) & 0x3FU);
    default:
      return byte(0);
  }
}

struct WidthRange {
  std::uint32_t first;
  std::uint32_t last;
  std::size_t cells;
};

// Blocks whose characters take no cell or two, from Unicode's EastAsianWidth.txt (whole blocks, not single characters).
constexpr std::array kWidths = {
    WidthRange{0x0300, 0x036F, 0}, WidthRange{0x1100, 0x115F, 2},   WidthRange{0x200B, 0x200F, 0},
    WidthRange{0x2E80, 0xA4CF, 2}, WidthRange{0xAC00, 0xD7A3, 2},   WidthRange{0xF900, 0xFAFF, 2},
    WidthRange{0xFE00, 0xFE0F, 0}, WidthRange{0xFE30, 0xFE6F, 2},   WidthRange{0xFF00, 0xFF60, 2},
    WidthRange{0xFFE0, 0xFFE6, 2}, WidthRange{0x1F300, 0x1FAFF, 2}, WidthRange{0x20000, 0x3FFFD, 2},
};

/// Terminal cells of code points [first, first + count) of `line`.
std::size_t cells(std::string_view line, std::size_t first, std::size_t count) {
  std::size_t total = 0;
  std::size_t index = 0;
  for (std::size_t at = 0; at < line.size() && index < first + count; ++index) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(line, at));
    const std::uint32_t point = code_point(line.substr(at, length));
    const auto* range =
        std::ranges::find_if(kWidths, [&](const WidthRange& r) { return point >= r.first && point <= r.last; });
    if (index >= first) {
      total += range == kWidths.end() ? 1 : range->cells;
    }
    at += length;
  }
  return total + (first + count - index);  // beyond the line: blank cells
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

std::string render(const Diagnostic& diagnostic) {
  std::string out = diagnostic.file;
  if (diagnostic.line != 0) {
    out += fmt::format(":{}:{}", diagnostic.line, diagnostic.column);
  }
  if (!out.empty()) {
    out += ": ";
  }
  out += fmt::format("{}: {}\n", severity_name(diagnostic.severity), diagnostic.text);
  if (diagnostic.line != 0 && diagnostic.caret_column != 0) {
    const std::size_t indent = cells(diagnostic.source_line, 0, diagnostic.caret_column - 1);
    const std::size_t width = std::max<std::size_t>(1, cells(diagnostic.source_line, diagnostic.caret_column - 1,
                                                             std::max<std::size_t>(1, diagnostic.caret_length)));
    out += fmt::format("{:>5} |{}{}\n", diagnostic.line, diagnostic.source_line.empty() ? "" : " ",
                       diagnostic.source_line);
    out += fmt::format("{:>5} | {}^{}\n", "", std::string(indent, ' '), std::string(width - 1, '~'));
  }
  if (!diagnostic.hint.empty()) {
    out += fmt::format("   hint: {}\n", diagnostic.hint);
  }
  if (!diagnostic.note.empty()) {
    out += fmt::format("   note: {}\n", diagnostic.note);
  }
  if (!diagnostic.pointer.empty()) {
    out += fmt::format("   at {}\n", diagnostic.pointer);
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
