#include "machine/python_packages.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "machine/search_path.hpp"

namespace numcheck::machine {
namespace {

namespace fs = std::filesystem;

class Folders {
 public:
  void add(const fs::path& folder) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored) && std::ranges::find(list_, folder) == list_.end()) {
      list_.push_back(folder);
    }
  }

  /// lib/python3.X/site-packages and its variants on Debian (dist-packages) and Red Hat (lib64).
  void add_prefix(const fs::path& prefix) {
    for (const char* lib : {"lib", "lib64"}) {
      std::vector<fs::path> versions;
      std::error_code ignored;
      for (const auto& entry : fs::directory_iterator(prefix / lib, ignored)) {
        if (entry.path().filename().string().starts_with("python3")) {
          versions.push_back(entry.path());
        }
      }
      std::ranges::sort(versions);
      for (const fs::path& version : versions) {
        add(version / "site-packages");
        add(version / "dist-packages");
      }
    }
  }

  [[nodiscard]] std::vector<fs::path> take() { return std::move(list_); }

 private:
  std::vector<fs::path> list_;
};

/// Prefix of the first python3 on PATH, for environments that are used without being activated. The link is not
/// followed, because the python3 of a virtual environment links to one outside it.
fs::path python_prefix() {
  for (const fs::path& folder : absolute_entries("PATH")) {
    std::error_code ignored;
    if (fs::exists(folder / "python3", ignored)) {
      return folder.parent_path();
    }
  }
  return {};
}

void add_active(Folders& folders) {
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const auto prefix = absolute_folder(name)) {
      folders.add_prefix(*prefix);
    }
  }
}

}  // namespace

std::vector<fs::path> active_python_package_folders() {
  Folders folders;
  add_active(folders);
  return folders.take();
}

std::vector<fs::path> python_package_folders() {
  Folders folders;
  for (const fs::path& folder : absolute_entries("PYTHONPATH")) {
    folders.add(folder);
  }
  add_active(folders);
  if (const fs::path prefix = python_prefix(); !prefix.empty()) {
    folders.add_prefix(prefix);
  }
  if (const auto home = absolute_folder("HOME")) {
    folders.add_prefix(*home / ".local");
  }
  for (const char* prefix : {"/usr/local", "/usr", "/opt/conda"}) {
    folders.add_prefix(prefix);
  }
  return folders.take();
}

}  // namespace numcheck::machine
