// Names of backends. Where a run has several libraries of one backend, each is a backend of its own, named after its
// version: "transformer_engine@2.20.2".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/case.hpp"

namespace numcheck::plan {

/// "transformer_engine" of "transformer_engine@2.20.2"; a name without version as it is.
[[nodiscard]] constexpr std::string_view backend_of(std::string_view name) noexcept {
  return name.substr(0, name.find('@'));
}

/// "2.20.2" of "transformer_engine@2.20.2"; empty if the name has no version.
[[nodiscard]] constexpr std::string_view version_of(std::string_view name) noexcept {
  const std::size_t at = name.find('@');
  return at == std::string_view::npos ? std::string_view() : name.substr(at + 1);
}

/// Whether a name is a word of small letters, digits and underscores, perhaps with a version of letters, digits and
/// ._+- after an @; 64 characters at most. What it names is another question.
[[nodiscard]] bool is_backend_name(std::string_view name) noexcept;

/// "backend@version", where the version may be any text: what a name cannot have is replaced by underscores or cut off.
[[nodiscard]] std::string versioned_backend(std::string_view backend, std::string_view version);

/// Cases that name `backend`, each replaced by one for each of `names` ("backend@version"), which differ in nothing
/// else; identifiers and digests follow. Other cases stay, and so does the order.
[[nodiscard]] std::vector<Case> one_case_per_version(std::vector<Case> cases, std::string_view backend,
                                                     std::span<const std::string> names);

/// The case of the plan that a versioned one was made of; any other case as it is.
[[nodiscard]] Case without_version(Case c);

}  // namespace numcheck::plan
