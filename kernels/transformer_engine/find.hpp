// Where TransformerEngine's core library is on this machine, and which version it is. Nothing is loaded.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::kernels::transformer_engine {

/// Release of TransformerEngine; `text` as its package has it: "2.20.2", "2.21.0.dev0+1a2b3c4".
struct Version {
  int major = 0;
  int minor = 0;
  std::string text;

  [[nodiscard]] bool at_least(int least_major, int least_minor) const noexcept {
    return major != least_major ? major > least_major : minor >= least_minor;
  }
};

/// The first supported release.
inline constexpr int kFirstMajor = 2;
inline constexpr int kFirstMinor = 9;

/// Reads "MAJOR.MINOR..."; nothing if the text does not start like that.
[[nodiscard]] std::optional<Version> parse_version(std::string_view text);

/// A library file with the version of the package that it belongs to.
struct Installed {
  std::filesystem::path file;
  std::optional<Version> version;  ///< nothing if no *.dist-info folder next to the package has it
};

/// "2.20.2 (path)"; "of unknown version (path)".
[[nodiscard]] std::string text_of(const Installed& installed);

/// What a search found: a library, or a sentence that says why there is none that can be used.
struct Search {
  std::optional<Installed> found;
  std::string problem;
};

/// The package folder that a library file belongs to: transformer_engine/wheel_lib/libtransformer_engine.so and
/// transformer_engine/libtransformer_engine.so are below it; anywhere else, it is the file's own folder.
[[nodiscard]] std::filesystem::path package_folder_of(const std::filesystem::path& file);

/// Version from the name of the *.dist-info folder in a package folder: that of transformer_engine_cu13 or _cu12, which
/// contain the core library, before that of transformer_engine.
[[nodiscard]] std::optional<Version> installed_version(const std::filesystem::path& packages);

/// The version of the library at a path (a file, or a folder that has one), even if too old; nothing if unknown.
[[nodiscard]] std::optional<Version> version_at(const std::string& path);

/// The library to use: the one of `paths` (a file, or a folder that has one), else TE_NUMCHECK_TE_LIB, else the first
/// of machine::python_package_folders() that has one. If a path is given, nothing else is searched. Versions before 2.9 are a problem.
[[nodiscard]] Search find_library(std::span<const std::string> paths);

}  // namespace numcheck::kernels::transformer_engine
