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
  std::string_view title;              ///< as in reports: "cublaslt"
  std::span<const char* const> files;  ///< file names in order of preference: "libcublasLt.so.13", ...
};

[[nodiscard]] const LibraryName& cublaslt_library() noexcept;
[[nodiscard]] const LibraryName& cublas_library() noexcept;
[[nodiscard]] const LibraryName& cudnn_library() noexcept;

/// Directories that are searched before the loader's own: LD_LIBRARY_PATH, lib folders next to the executable
/// (../lib, ../nvidia/cu13/lib, ...), CUDA_HOME, CUDA_PATH, /usr/local/cuda, and site-packages/nvidia/*/lib of the
/// Python environment that VIRTUAL_ENV or CONDA_PREFIX names. Relative entries of these variables are ignored.
[[nodiscard]] std::vector<std::filesystem::path> library_directories();

/// A loaded shared object.
class SharedLibrary {
 public:
  /// Searches `lib_dir`, or TE_NUMCHECK_LIB_DIR if that is empty; if either is given, nothing else is searched. Without
  /// them: library_directories(), then the loader's default. Throws a core::EnvironmentError that lists where it looked
  /// and what the loader said.
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
