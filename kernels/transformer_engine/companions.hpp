// The libraries that TransformerEngine expects to find in the process, and the CUDA headers that it compiles with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace numcheck::kernels::transformer_engine {

/// Sonames of the NVIDIA libraries that the file declares as needed, CUDA's runtime first, and NVRTC of the same CUDA,
/// which it uses without declaring it.
[[nodiscard]] std::vector<std::string> companions_of(const std::filesystem::path& file);

/// Loads them with global visibility; one that is already loaded becomes visible. Searched: `lib_dir` (or
/// TE_NUMCHECK_LIB_DIR), nvidia/*/lib of the Python environment that the file belongs to, library_directories(), the
/// other Python environments, the loader's default paths. Returns the sonames that were not found.
[[nodiscard]] std::vector<std::string> load_companions(const std::filesystem::path& file, const std::string& lib_dir);

/// Root of a CUDA toolkit with headers for run-time compilation, for the file's environment; empty if none is found or
/// if CUDA_HOME or NVTE_CUDA_INCLUDE_DIR already names one. Candidates: CUDA_PATH, /usr/local/cuda, nvidia/cu13 and
/// nvidia/cuda_runtime of the Python environments.
[[nodiscard]] std::filesystem::path toolkit_with_headers(const std::filesystem::path& file);

}  // namespace numcheck::kernels::transformer_engine
