#include "kernels/transformer_engine/find.hpp"

#include <array>
#include <charconv>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "machine/python_packages.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInstall =
    "install TransformerEngine (pip install transformer-engine-cu13, or -cu12), or name its libtransformer_engine.so "
    "with "
    "--te-lib";

/// Where the library is in a package folder: installed by a wheel, installed from source, left by an editable build.
constexpr std::array kPlaces = {"transformer_engine/wheel_lib/libtransformer_engine.so",
                                "transformer_engine/libtransformer_engine.so", "libtransformer_engine.so"};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// The library in a folder (which may be a package folder); empty if there is none.
fs::path library_in(const fs::path& folder) {
  for (const char* place : kPlaces) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / place, ignored)) {
      return folder / place;
    }
  }
  return {};
}

Search checked(const fs::path& file) {
  std::optional<Version> version = installed_version(package_folder_of(file));
  if (version.has_value() && !version->at_least(kFirstMajor, kFirstMinor)) {
    return {std::nullopt,
            fmt::format("TransformerEngine {} ({}) is too old: te-numcheck needs {}.{} or newer; upgrade it "
                        "(pip install --upgrade transformer-engine-cu13, or -cu12)",
                        version->text, file.string(), kFirstMajor, kFirstMinor)};
  }
  return {Installed{file, std::move(version)}, {}};
}

/// `origin` says where the path came from, for the message.
Search check_path(const std::string& path, std::string_view origin) {
  std::error_code ignored;
  const fs::path target = fs::absolute(path, ignored);
  if (fs::is_directory(target, ignored)) {
    const fs::path file = library_in(target);
    return file.empty() ? Search{std::nullopt, fmt::format("{}: the folder {} has no libtransformer_engine.so, "
                                                           "either directly or in transformer_engine/wheel_lib",
                                                           origin, path)}
                        : checked(file);
  }
  if (!fs::is_regular_file(target, ignored)) {
    return {std::nullopt, fmt::format("{}: {} is not a file; {}", origin, path, kInstall)};
  }
  return checked(target);
}

}  // namespace

std::optional<Version> parse_version(std::string_view text) {
  Version version;
  version.text = text;
  const char* begin = version.text.data();
  const char* end = begin + version.text.size();
  const auto [dot, major_error] = std::from_chars(begin, end, version.major);
  if (major_error != std::errc() || dot == end || *dot != '.') {
    return std::nullopt;
  }
  const auto [rest, minor_error] = std::from_chars(dot + 1, end, version.minor);
  if (minor_error != std::errc() || version.major < 0 || version.minor < 0) {
    return std::nullopt;
  }
  return version;
}

std::string text_of(const Installed& installed) {
  return fmt::format("{} ({})", installed.version.has_value() ? installed.version->text : "of unknown version",
                     installed.file.string());
}

fs::path package_folder_of(const fs::path& file) {
  fs::path folder = file.parent_path();
  if (folder.filename() == "wheel_lib") {
    folder = folder.parent_path();
  }
  return folder.filename() == "transformer_engine" ? folder.parent_path() : folder;
}

std::optional<Version> installed_version(const fs::path& packages) {
  std::optional<Version> general;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(packages, ignored)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kSuffix = ".dist-info";
    const std::size_t dash = name.find('-');
    if (!name.ends_with(kSuffix) || dash == std::string::npos || dash > name.size() - kSuffix.size()) {
      continue;
    }
    const std::string_view package = std::string_view(name).substr(0, dash);
    const auto version =
        parse_version(std::string_view(name).substr(dash + 1, name.size() - kSuffix.size() - dash - 1));
    if (version.has_value() && package.starts_with("transformer_engine_cu")) {
      return version;
    }
    if (version.has_value() && package == "transformer_engine") {
      general = version;
    }
  }
  return general;
}

std::optional<Version> version_at(const std::string& path) {
  std::error_code ignored;
  const fs::path target = fs::absolute(path, ignored);
  const fs::path file = fs::is_directory(target, ignored) ? library_in(target) : target;
  return file.empty() ? std::nullopt : installed_version(package_folder_of(file));
}

Search find_library(std::span<const std::string> paths) {
  if (paths.size() > 1) {
    return {std::nullopt,
            "one process cannot load two TransformerEngine libraries: name one of them as the case's backend, "
            "transformer_engine@VERSION"};
  }
  if (!paths.empty()) {
    return check_path(paths.front(), "--te-lib");
  }
  if (const std::string path = variable("TE_NUMCHECK_TE_LIB"); !path.empty()) {
    return check_path(path, "TE_NUMCHECK_TE_LIB");
  }
  const std::vector<fs::path> folders = machine::python_package_folders();
  for (const fs::path& folder : folders) {
    if (const fs::path file = library_in(folder); !file.empty()) {
      return checked(file);
    }
  }
  std::string searched;
  for (const fs::path& folder : folders) {
    searched += (searched.empty() ? "" : ", ") + folder.string();
  }
  return {std::nullopt, fmt::format("TransformerEngine is not installed in {}; {}",
                                    searched.empty() ? "any Python environment" : searched, kInstall)};
}

}  // namespace numcheck::kernels::transformer_engine
