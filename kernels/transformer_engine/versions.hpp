// Several libraries of TransformerEngine in one run: what each is called.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::kernels::transformer_engine {

inline constexpr std::string_view kBackend = "transformer_engine";

/// One of several libraries.
struct NamedLibrary {
  std::string backend;  ///< "transformer_engine@2.20.2"; "...@unknown" if no package has the version
  std::string path;     ///< as given
};

/// Names for the libraries at these paths (files, or folders that have one), after their versions. Several with the
/// same version are 2.20.2-a, 2.20.2-b, ... in the order in which they are given.
[[nodiscard]] std::vector<NamedLibrary> name_libraries(std::span<const std::string> paths);

/// What to pass to find_library for a case whose backend names `version`: of several paths, the one with that name. A
/// sentence if there is none.
struct Choice {
  std::vector<std::string> paths;
  std::string problem;
};
[[nodiscard]] Choice choose_library(std::span<const std::string> paths, std::string_view version);

}  // namespace numcheck::kernels::transformer_engine
