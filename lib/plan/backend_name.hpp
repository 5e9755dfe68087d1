// Names of backends: that of a case which leaves the choice to the device, and those of one among several libraries. If a run has several libraries for one backend, each is a backend of its own, named after its
// version: "transformer_engine@2.20.2".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/case.hpp"

namespace numcheck::plan {

/// What a case without a backend has: the op's first one on a GPU, sim on a simulated device.
inline constexpr std::string_view kAutoBackend = "auto";

/// "transformer_engine" of "transformer_engine@2.20.2"; a name without version unchanged.
[[nodiscard]] constexpr std::string_view backend_of(std::string_view name) noexcept {
  return name.substr(0, name.find('@'));
}

/// "2.20.2" of "transformer_engine@2.20.2"; empty if the name has no version.
[[nodiscard]] constexpr std::string_view version_of(std::string_view name) noexcept {
  const std::size_t at = name.find('@');
  return at == std::string_view::npos ? std::string_view() : name.substr(at + 1);
}

/// Whether a name is a word of lower-case letters, digits and underscores, optionally followed by @ and a version of
/// letters, digits and ._+-; 64 characters at most. Whether such a backend exists is not checked.
[[nodiscard]] bool is_backend_name(std::string_view name) noexcept;

/// "backend@version" for any version text: characters that a name cannot have become underscores; the rest is cut off.
[[nodiscard]] std::string versioned_backend(std::string_view backend, std::string_view version);

/// Replaces every case that names `backend` by one for each of `names` ("backend@version"), which differ in nothing
/// else; identifiers and digests follow. Other cases and the order stay the same.
[[nodiscard]] std::vector<Case> one_case_per_version(std::vector<Case> cases, std::string_view backend,
                                                     std::span<const std::string> names);

/// The plan's case from which a versioned one was made; any other case unchanged.
[[nodiscard]] Case without_version(Case c);

}  // namespace numcheck::plan
