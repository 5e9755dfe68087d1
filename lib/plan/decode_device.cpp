#include "plan/decode_device.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "plan/match.hpp"

namespace numcheck::plan {
namespace {

constexpr std::string_view kArchitectureForm = R"(architectures are "sm_90" or {"from": "sm_80", "to": "sm_90"})";
constexpr std::string_view kVersionForm = R"(versions are "13.1" (any 13.1.x) or {"from": "13.0", "to": "13.1"})";
constexpr std::size_t kMaxVersionNumbers = 4;

/// "sm_90" is 90.
std::optional<int> parse_architecture(std::string_view text) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  const char* const end = text.data() + text.size();
  if (!text.starts_with(kPrefix) || text.size() > kPrefix.size() + 3) {
    return {};
  }
  const auto [rest, error] = std::from_chars(text.data() + kPrefix.size(), end, number);
  return error == std::errc() && rest == end && number >= 10 ? std::optional(number) : std::nullopt;
}

std::optional<int> decode_architecture(const Node& node, Reporter& reporter) {
  if (!node.is(Node::Kind::text)) {
    wrong_kind(node, "an architecture", "a string such as \"sm_90\"", reporter);
    return {};
  }
  const std::optional<int> sm = parse_architecture(node.text);
  if (!sm) {
    reporter.error(node, fmt::format("{} is not an architecture", quote(node.text)),
                   {std::string(kArchitectureForm), {}});
  }
  return sm;
}

std::optional<Version> decode_version(const Node& node, Reporter& reporter) {
  if (!node.is(Node::Kind::text)) {
    const bool number = node.is(Node::Kind::number);
    wrong_kind(node, "a version", "a string such as \"13.1\"", reporter,
               number ? fmt::format("write \"{}\"", node.text.substr(0, 20)) : std::string());
    return {};
  }
  Version version = leading_version(node.text);
  const bool whole = !node.text.empty() && node.text.find_first_not_of("0123456789.") == std::string::npos &&
                     node.text.find("..") == std::string::npos && node.text.back() != '.';
  if (!whole || version.empty() || version.size() > kMaxVersionNumbers ||
      version.size() != static_cast<std::size_t>(std::ranges::count(node.text, '.')) + 1) {
    reporter.error(node, fmt::format("{} is not a version", quote(node.text)), {std::string(kVersionForm), {}});
    return {};
  }
  return version;
}

/// The ends of {"from", "to"}, either of which may be missing; false after a report.
bool find_ends(const Node& node, std::string_view form, const Node*& from, const Node*& to, Reporter& reporter) {
  static constexpr std::array<std::string_view, 2> kKeys = {"from", "to"};
  const std::size_t errors = reporter.error_count();
  check_keys(node, kKeys, "a range", reporter);
  from = node.find("from");
  to = node.find("to");
  if (from == nullptr && to == nullptr && reporter.error_count() == errors) {
    reporter.error(node, "this range has neither \"from\" nor \"to\"", {std::string(form), {}});
  }
  return reporter.error_count() == errors;
}

std::optional<ArchitectureRange> decode_architecture_range(const Node& node, Reporter& reporter) {
  if (!node.is(Node::Kind::object)) {
    const std::optional<int> sm = decode_architecture(node, reporter);
    return sm ? std::optional(ArchitectureRange{*sm, *sm}) : std::nullopt;
  }
  const Node* from = nullptr;
  const Node* to = nullptr;
  if (!find_ends(node, kArchitectureForm, from, to, reporter)) {
    return {};
  }
  const std::optional<int> first = from == nullptr ? 0 : decode_architecture(*from, reporter);
  const std::optional<int> last = to == nullptr ? std::numeric_limits<int>::max() : decode_architecture(*to, reporter);
  if (first && last && *first > *last) {
    reporter.error(*to, fmt::format("this range is empty: sm_{} comes before sm_{}", *last, *first));
    return {};
  }
  return first && last ? std::optional(ArchitectureRange{*first, *last}) : std::nullopt;
}

std::optional<VersionRange> decode_version_range(const Node& node, Reporter& reporter) {
  if (!node.is(Node::Kind::object)) {
    const std::optional<Version> version = decode_version(node, reporter);
    return version ? std::optional(VersionRange{*version, *version}) : std::nullopt;
  }
  const Node* from = nullptr;
  const Node* to = nullptr;
  if (!find_ends(node, kVersionForm, from, to, reporter)) {
    return {};
  }
  const std::optional<Version> first = from == nullptr ? Version() : decode_version(*from, reporter);
  const std::optional<Version> last = to == nullptr ? Version() : decode_version(*to, reporter);
  if (!first || !last) {
    return {};
  }
  VersionRange range{*first, *last};
  if (is_empty(range)) {
    reporter.error(*to, fmt::format("this range is empty: {} comes before {}", to->text, from->text));
    return {};
  }
  return range;
}

}  // namespace

void decode_architectures(const Node& node, DeviceCondition& condition, Reporter& reporter) {
  for (const Node* element : elements(node, "\"architecture\"", reporter)) {
    if (const auto range = decode_architecture_range(*element, reporter)) {
      condition.architectures.push_back(*range);
    }
  }
}

void decode_libraries(const Node& node, DeviceCondition& condition, const Vocabulary& vocabulary, Reporter& reporter) {
  if (!node.is(Node::Kind::object)) {
    wrong_kind(node, "\"libraries\"", "an object", reporter, R"({"cublaslt": {"from": "13.0", "to": "13.1"}})");
    return;
  }
  const auto is_comment = [](const Member& member) { return member.key == "$comment"; };
  if (std::ranges::all_of(node.members, is_comment)) {
    reporter.error(node, "\"libraries\" names no library",
                   {suggestion("", vocabulary.libraries, "libraries are:"), {}});
  }
  for (const Member& member : node.members) {
    if (is_comment(member)) {
      continue;
    }
    if (std::ranges::find(vocabulary.libraries, member.key) == vocabulary.libraries.end()) {
      reporter.error(member, fmt::format("unknown library {}", quote(member.key)),
                     {suggestion(member.key, vocabulary.libraries, "libraries are:"), {}});
      continue;
    }
    LibraryCondition library{member.key, {}};
    for (const Node* element : elements(member.value, quote(member.key), reporter)) {
      if (auto range = decode_version_range(*element, reporter)) {
        library.versions.push_back(*std::move(range));
      }
    }
    condition.libraries.push_back(std::move(library));
  }
}

}  // namespace numcheck::plan
