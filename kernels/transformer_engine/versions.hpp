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
  std::string backend;  ///< "transformer_engine@2.20.2"; "...@unknown" where no package tells the version
  std::string path;     ///< as it was given
};

/// Names for the libraries at these paths (files, or folders that hold one), after their versions. Several of one
/// version are 2.20.2-a, 2.20.2-b, ... in the order in which they are given.
[[nodiscard]] std::vector<NamedLibrary> name_libraries(std::span<const std::string> paths);

/// What find_library is to be asked for a case of a backend `version`: of several paths the one of that name. A
/// sentence if none has it.
struct Choice {
  std::vector<std::string> asked;
  std::string problem;
};
[[nodiscard]] Choice choose_library(std::span<const std::string> paths, std::string_view version);

}  // namespace numcheck::kernels::transformer_engine
