#include "plan/backend_name.hpp"

#include <algorithm>
#include <utility>

namespace numcheck::plan {
namespace {

constexpr std::size_t kMaxName = 64;
constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyz0123456789_";
constexpr std::string_view kVersion = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-";

}  // namespace

bool is_backend_name(std::string_view name) noexcept {
  const std::string_view word = backend_of(name), version = version_of(name);
  const bool has_version = word.size() != name.size();
  return !word.empty() && name.size() <= kMaxName && word.find_first_not_of(kWord) == std::string_view::npos &&
         version.empty() != has_version && version.find_first_not_of(kVersion) == std::string_view::npos;
}

std::string versioned_backend(std::string_view backend, std::string_view version) {
  std::string name = std::string(backend) + "@";
  for (const char letter : version.substr(0, kMaxName - std::min(kMaxName, name.size()))) {
    name += kVersion.find(letter) == std::string_view::npos ? '_' : letter;
  }
  return name;
}

std::vector<Case> one_case_per_version(std::vector<Case> cases, std::string_view backend,
                                       std::span<const std::string> names) {
  std::vector<Case> all;
  all.reserve(cases.size());
  for (Case& c : cases) {
    if (c.backend != backend) {
      all.push_back(std::move(c));
      continue;
    }
    for (const std::string& name : names) {
      Case& versioned = all.emplace_back(c);
      versioned.backend = name;
      identify(versioned);
    }
  }
  return all;
}

Case without_version(Case c) {
  if (!version_of(c.backend).empty()) {
    c.backend = backend_of(c.backend);
    identify(c);
  }
  return c;
}

}  // namespace numcheck::plan
