#include "kernels/cuda_support/driver_files.hpp"

#include <dlfcn.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>

namespace numcheck::kernels::cuda_support {
namespace {

struct CloseLibrary {
  void operator()(void* handle) const noexcept { dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <class Function>
Function symbol(const Library& library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library.get(), name));
}

// Three functions of NVML's C interface (nvml.h: nvmlReturn_t 0 is success).
std::string version_from_nvml() {
  const Library nvml(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
  if (!nvml) {
    return {};
  }
  const auto init = symbol<int (*)()>(nvml, "nvmlInit_v2");
  const auto shutdown = symbol<int (*)()>(nvml, "nvmlShutdown");
  const auto query = symbol<int (*)(char*, unsigned)>(nvml, "nvmlSystemGetDriverVersion");
  if (init == nullptr || shutdown == nullptr || query == nullptr || init() != 0) {
    return {};
  }
  std::array<char, 96> text{};
  const bool known = query(text.data(), static_cast<unsigned>(text.size() - 1)) == 0;
  shutdown();
  return known ? std::string(text.data()) : std::string();
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ...": the first word that starts with three digits
/// and a dot.
std::string version_from_proc() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    const auto digit = [&word](std::size_t i) { return std::isdigit(static_cast<unsigned char>(word[i])) != 0; };
    if (word.size() > 4 && digit(0) && digit(1) && digit(2) && word[3] == '.') {
      return word;
    }
  }
  return {};
}

}  // namespace

std::string driver_trace() {
  std::error_code ignored;
  // Under WSL, the Windows driver appears as /dev/dxg and in WSL's library directory.
  for (const char* path :
       {"/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia/version", "/usr/lib/wsl/lib/libcuda.so.1"}) {
    if (std::filesystem::exists(path, ignored)) {
      return path;
    }
  }
  return Library(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) ? "libcuda.so.1" : "";
}

std::string driver_version() {
  std::string version = version_from_nvml();
  return version.empty() ? version_from_proc() : version;
}

}  // namespace numcheck::kernels::cuda_support
