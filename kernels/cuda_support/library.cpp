#include "kernels/cuda_support/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "machine/python_packages.hpp"
#include "machine/search_path.hpp"

namespace numcheck::kernels::cuda_support {
namespace {

namespace fs = std::filesystem;

constexpr std::array kCublasLtFiles = {"libcublasLt.so.13", "libcublasLt.so.12"};
constexpr std::array kCublasFiles = {"libcublas.so.13", "libcublas.so.12"};
constexpr std::array kCudnnFiles = {"libcudnn.so.9"};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool has_one_of(const fs::path& directory, const LibraryName& name) {
  std::error_code ignored;
  return std::ranges::any_of(name.files, [&](const char* file) { return fs::exists(directory / file, ignored); });
}

/// Where to look if a folder was requested: there, unless it was meant for others of these libraries.
std::vector<fs::path> places_for(const LibraryName& name, const fs::path& requested) {
  const bool of_others = has_one_of(requested, cublaslt_library()) || has_one_of(requested, cublas_library()) ||
                         has_one_of(requested, cudnn_library());
  return has_one_of(requested, name) || !of_others ? std::vector{requested} : searched_places();
}

struct Attempt {
  void* handle = nullptr;
  std::vector<std::string> complaints;  ///< about files that exist but do not load
};

/// Loads the first of the library's files that `directory` has; an empty path means the loader's default.
void try_directory(const LibraryName& name, const fs::path& directory, Attempt& attempt) {
  for (const char* file : name.files) {
    const fs::path path = directory / file;
    std::error_code ignored;
    if (!directory.empty() && !fs::exists(path, ignored)) {
      continue;
    }
    // NODELETE: these libraries register handlers with the driver that must not outlive their code.
    attempt.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (attempt.handle != nullptr) {
      return;
    }
    const char* complaint = dlerror();
    attempt.complaints.emplace_back(complaint == nullptr ? "unknown error" : complaint);
  }
}

[[noreturn]] void fail(const LibraryName& name, const std::vector<fs::path>& searched,
                       const std::vector<std::string>& complaints) {
  std::vector<std::string> places;
  for (const fs::path& place : searched) {
    places.push_back(place.empty() ? "the loader's default path" : place.string());
  }
  throw core::EnvironmentError(fmt::format(
      "{} was not found: no usable {} in {}{}. Install it with CUDA or by pip (nvidia-cublas, nvidia-cudnn-cu13), "
      "or give its folder with --lib-dir.",
      name.title, fmt::join(name.files, " or "), fmt::join(places, ", "),
      complaints.empty() ? std::string() : fmt::format(" ({})", fmt::join(complaints, "; "))));
}

}  // namespace

const LibraryName& cublaslt_library() noexcept {
  static constexpr LibraryName kName{"cublaslt", kCublasLtFiles, "cublasLtGetVersion"};
  return kName;
}

const LibraryName& cublas_library() noexcept {
  static constexpr LibraryName kName{"cublas", kCublasFiles, nullptr, "cublasGetProperty"};
  return kName;
}

const LibraryName& cudnn_library() noexcept {
  static constexpr LibraryName kName{"cudnn", kCudnnFiles, "cudnnGetVersion"};
  return kName;
}

std::vector<fs::path> wheel_folders(const fs::path& packages) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(packages / "nvidia", ignored)) {
    if (fs::is_directory(entry.path() / "lib", ignored)) {
      folders.push_back(entry.path() / "lib");
    }
  }
  std::ranges::sort(folders);
  return folders;
}

std::vector<fs::path> library_directories() {
  std::vector<fs::path> folders = machine::absolute_entries("LD_LIBRARY_PATH");
  const auto append = [&folders](const std::vector<fs::path>& more) {
    folders.insert(folders.end(), more.begin(), more.end());
  };
  std::error_code ignored;
  const fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  if (!executable.empty()) {
    const fs::path prefix = executable.parent_path().parent_path();
    folders.push_back(prefix / "lib");
    append(wheel_folders(prefix));
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const auto root = machine::absolute_folder(name)) {
      folders.push_back(*root / "lib64");
      folders.push_back(*root / "lib");  // a toolkit from wheels or from conda
    }
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  for (const fs::path& packages : machine::active_python_package_folders()) {
    append(wheel_folders(packages));
  }
  if (const auto prefix = machine::absolute_folder("CONDA_PREFIX")) {
    folders.push_back(*prefix / "lib");
  }
  return folders;
}

std::vector<fs::path> searched_places() {
  std::vector<fs::path> places = library_directories();
  places.emplace_back();
  for (const fs::path& packages : machine::python_package_folders()) {
    for (fs::path& folder : wheel_folders(packages)) {
      if (std::ranges::find(places, folder) == places.end()) {
        places.push_back(std::move(folder));
      }
    }
  }
  return places;
}

SharedLibrary::SharedLibrary(const LibraryName& name, const std::string& lib_dir) {
  const std::string requested = lib_dir.empty() ? variable("TE_NUMCHECK_LIB_DIR") : lib_dir;
  const std::vector<fs::path> folders =
      requested.empty() ? searched_places() : places_for(name, fs::absolute(requested));
  Attempt attempt;
  for (const fs::path& folder : folders) {
    try_directory(name, folder, attempt);
    if (attempt.handle != nullptr) {
      break;
    }
  }
  if (attempt.handle == nullptr) {
    fail(name, folders, attempt.complaints);
  }
  handle_.reset(attempt.handle);
  link_map* map = nullptr;
  path_ = dlinfo(handle_.get(), RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "unknown";
}

void SharedLibrary::Close::operator()(void* handle) const noexcept {
  dlclose(handle);
}

void* SharedLibrary::address(const char* name) const {
  void* found = dlsym(handle_.get(), name);
  if (found == nullptr) {
    throw core::EnvironmentError(fmt::format("{} has no function {}", path_, name));
  }
  return found;
}

}  // namespace numcheck::kernels::cuda_support
