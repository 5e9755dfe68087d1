#include "plan/reporter.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/strings.hpp"

namespace numcheck::plan {
namespace {

constexpr std::size_t kMaxQuoted = 60;
constexpr std::size_t kMaxPointer = 200;
constexpr std::size_t kMaxListing = 150;  // characters of a list of names

}  // namespace

void Reporter::add(Severity severity, const Location& where, const Node* node, std::string text, Advice advice) {
  const bool is_error = severity == Severity::error;
  // A value of "defaults" is decoded once for every case that uses it, but its mistake is reported only once.
  if (!seen_.insert(fmt::format("{}:{}:{}", where.file, where.begin, text)).second) {
    return;
  }
  std::vector<Placed>& list = is_error ? errors_ : warnings_;
  error_count_ += is_error ? 1 : 0;
  if (list.size() >= kMaxDiagnostics) {
    return;
  }
  Diagnostic diagnostic = located(where, node);
  diagnostic.severity = severity;
  diagnostic.text = std::move(text);
  diagnostic.hint = std::move(advice.hint);
  diagnostic.note = std::move(advice.note);
  list.push_back({where, std::move(diagnostic)});
}

Diagnostic Reporter::located(const Location& where, const Node* node) const {
  Diagnostic diagnostic;
  place(diagnostic, *sources_, where);
  if (node != nullptr && root_ != nullptr) {
    diagnostic.pointer = core::printable(pointer_of(*root_, *node), kMaxPointer);
  }
  return diagnostic;
}

Diagnostic Reporter::diagnostic_at(const Node& node) const {
  return located(node.where, &node);
}

std::vector<Diagnostic> Reporter::in_order(std::vector<Placed> list) {
  std::ranges::stable_sort(list, {}, [](const Placed& p) { return std::pair(p.where.file, p.where.begin); });
  std::vector<Diagnostic> diagnostics;
  for (Placed& placed : list) {
    diagnostics.push_back(std::move(placed.diagnostic));
  }
  return diagnostics;
}

void Reporter::error(const Location& where, std::string text, Advice advice) {
  add(Severity::error, where, nullptr, std::move(text), std::move(advice));
}

void Reporter::error(const Node& node, std::string text, Advice advice) {
  add(Severity::error, node.where, &node, std::move(text), std::move(advice));
}

void Reporter::error(const Member& member, std::string text, Advice advice) {
  add(Severity::error, member.key_where, &member.value, std::move(text), std::move(advice));
}

void Reporter::warning(const Node& node, std::string text, Advice advice) {
  add(Severity::warning, node.where, &node, std::move(text), std::move(advice));
}

std::string Reporter::line_of(const Node& node) const {
  if (node.where.file >= sources_->size()) {
    return "elsewhere";
  }
  const Source& source = (*sources_)[node.where.file];
  return fmt::format("{}:{}", source.name, line_column(source.text, node.where.begin).line);
}

Place Reporter::place_of(const Node& node) {
  if (node.where.file >= sources_->size()) {
    return {};
  }
  const auto [found, is_new] = places_.try_emplace({node.where.file, node.where.begin});
  if (is_new) {
    const Source& source = (*sources_)[node.where.file];
    Cursor& cursor = cursors_[node.where.file];
    if (node.where.begin < cursor.offset) {
      cursor = {};
    }
    const std::string_view between =
        std::string_view(source.text).substr(cursor.offset, node.where.begin - cursor.offset);
    const LineColumn step = line_column(between, between.size());
    cursor = {node.where.begin, cursor.line + step.line - 1,
              step.line == 1 ? cursor.column + step.column - 1 : step.column};
    found->second = {source.name, cursor.line, cursor.column};
  }
  return found->second;
}

void Reporter::throw_if_failed() const {
  if (failed()) {
    throw PlanError(in_order(errors_), error_count_);
  }
}

std::string quote(std::string_view text) {
  return '"' + core::printable(text, kMaxQuoted) + '"';
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates, std::string_view lead) {
  std::string out;
  // Computing the distance takes time proportional to both lengths; no name is this long.
  const std::string_view near = word.size() > kMaxQuoted ? std::string_view() : core::nearest_name(word, candidates);
  if (!near.empty()) {
    out = fmt::format("did you mean \"{}\"? ", near);
  }
  out += lead;
  const std::size_t start = out.size();
  for (const std::string_view candidate : candidates) {
    if (out.size() - start + candidate.size() > kMaxListing) {
      out += " \xE2\x80\xA6";
      break;
    }
    out += ' ';
    out += candidate;
  }
  return out;
}

void check_keys(const Node& object, std::span<const std::string_view> legal, std::string_view owner, Reporter& reporter,
                std::span<const std::string_view> reported) {
  for (const Member& member : object.members) {
    if (member.key != "$comment" && std::ranges::find(legal, member.key) == legal.end() &&
        std::ranges::find(reported, member.key) == reported.end()) {
      std::string hint = reporter.saturated() ? "" : suggestion(member.key, legal, fmt::format("{} has:", owner));
      reporter.error(member, "unknown key " + quote(member.key), {std::move(hint), {}});
    }
  }
}

void wrong_kind(const Node& node, std::string_view what, std::string_view expected, Reporter& reporter,
                std::string hint) {
  reporter.error(node, fmt::format("{} must be {}, not {}", what, expected, kind_name(node.kind)),
                 {std::move(hint), {}});
}

}  // namespace numcheck::plan
