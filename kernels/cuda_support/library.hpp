// Loading NVIDIA's libraries at run time, so that the program starts without them and can say what it found.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::kernels::cuda_support {

/// A library that is loaded by name.
struct LibraryName {
  std::string_view title;                   ///< as in reports: "cublaslt"
  std::span<const char* const> files;       ///< file names in order of preference: "libcublasLt.so.13", ...
  const char* version_function = nullptr;   ///< returns major * 10000 + minor * 100 + patch
  const char* property_function = nullptr;  ///< of a library without that: gives one of the three at a time
};

[[nodiscard]] const LibraryName& cublaslt_library() noexcept;
[[nodiscard]] const LibraryName& cublas_library() noexcept;
[[nodiscard]] const LibraryName& cudnn_library() noexcept;

/// Directories that are searched before the loader's own: LD_LIBRARY_PATH, lib folders next to the executable
/// (../lib, ../nvidia/*/lib), CUDA_HOME, CUDA_PATH, /usr/local/cuda, nvidia/*/lib in the packages of the Python
/// environment that VIRTUAL_ENV or CONDA_PREFIX names, and conda's own packages. Relative entries of these variables are
/// ignored.
[[nodiscard]] std::vector<std::filesystem::path> library_directories();

/// nvidia/*/lib below a folder of Python packages, sorted: where NVIDIA's wheels put their libraries.
[[nodiscard]] std::vector<std::filesystem::path> wheel_folders(const std::filesystem::path& packages);

/// Everything that is searched for a library, in order: library_directories(); an empty path, which is the loader's
/// default; and the wheels of Python environments that are not active, because what is installed for all programs comes
/// before what is installed for some other one.
[[nodiscard]] std::vector<std::filesystem::path> searched_places();

/// A loaded shared object.
class SharedLibrary {
 public:
  /// Searches `lib_dir`, or TE_NUMCHECK_LIB_DIR if that is empty, and nothing else, unless that folder has others of these
  /// libraries but not this one, as that of a wheel does. Otherwise, and without either: searched_places(). Throws a core::EnvironmentError that lists where it looked and what the loader said.
  SharedLibrary(const LibraryName& name, const std::string& lib_dir);

  /// Address of a symbol; throws core::EnvironmentError if the library has none by that name.
  template <class Function>
  [[nodiscard]] Function symbol(const char* name) const {
    return reinterpret_cast<Function>(address(name));
  }
  /// File that the loader mapped.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  struct Close {
    void operator()(void* handle) const noexcept;
  };
  [[nodiscard]] void* address(const char* name) const;

  std::unique_ptr<void, Close> handle_;
  std::string path_;
};

}  // namespace numcheck::kernels::cuda_support
