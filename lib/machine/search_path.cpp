#include "machine/search_path.hpp"

#include <array>
#include <cstdlib>
#include <string_view>

#include "core/strings.hpp"

namespace numcheck::machine {
namespace {

namespace fs = std::filesystem;

constexpr std::array kLists = {"LD_LIBRARY_PATH", "PYTHONPATH", "PATH"};
constexpr std::array kFolders = {"VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "HOME"};

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::vector<fs::path> absolute_entries(const char* variable) {
  std::vector<fs::path> entries;
  for (const std::string& entry : core::split(value_of(variable), ':')) {
    if (entry.starts_with('/')) {
      entries.emplace_back(entry);
    }
  }
  return entries;
}

std::optional<fs::path> absolute_folder(const char* variable) {
  const std::string value = value_of(variable);
  return value.starts_with('/') ? std::optional<fs::path>(value) : std::nullopt;
}

std::vector<IgnoredEntry> ignored_entries() {
  std::vector<IgnoredEntry> ignored;
  const auto note = [&ignored](const char* variable, const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      if (!entry.starts_with('/')) {
        ignored.push_back({variable, entry});
      }
    }
  };
  for (const char* variable : kLists) {
    if (const std::string value = value_of(variable); !value.empty()) {
      note(variable, core::split(value, ':'));
    }
  }
  for (const char* variable : kFolders) {
    if (const std::string value = value_of(variable); !value.empty()) {
      note(variable, {value});
    }
  }
  return ignored;
}

}  // namespace numcheck::machine
