#include "kernels/transformer_engine/companions.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "kernels/cuda_support/library.hpp"
#include "kernels/transformer_engine/find.hpp"
#include "kernels/transformer_engine/needed.hpp"
#include "machine/python_packages.hpp"
#include "machine/search_path.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRuntime = "libcudart.so.";

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::vector<fs::path> search_folders(const fs::path& file, const std::string& lib_dir) {
  std::vector<fs::path> folders;
  if (!lib_dir.empty()) {
    folders.push_back(fs::absolute(lib_dir));
  } else if (is_set("TE_NUMCHECK_LIB_DIR")) {
    folders.push_back(fs::absolute(std::getenv("TE_NUMCHECK_LIB_DIR")));
  }
  const auto append = [&folders](const std::vector<fs::path>& more) {
    folders.insert(folders.end(), more.begin(), more.end());
  };
  append(cuda_support::wheel_folders(package_folder_of(file)));
  append(cuda_support::library_directories());
  for (const fs::path& packages : machine::python_package_folders()) {
    append(cuda_support::wheel_folders(packages));
  }
  return folders;
}

bool load_globally(const std::string& soname, const std::vector<fs::path>& folders) {
  constexpr int kGlobal = RTLD_LAZY | RTLD_GLOBAL | RTLD_NODELETE;
  if (dlopen(soname.c_str(), kGlobal | RTLD_NOLOAD) != nullptr) {
    return true;
  }
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (fs::exists(folder / soname, ignored) && dlopen((folder / soname).c_str(), kGlobal) != nullptr) {
      return true;
    }
  }
  return dlopen(soname.c_str(), kGlobal) != nullptr;
}

bool has_headers(const fs::path& root) {
  std::error_code ignored;
  return fs::exists(root / "include" / "cuda_runtime.h", ignored);
}

}  // namespace

std::vector<std::string> companions_of(const fs::path& file) {
  constexpr std::array kPrefixes = {"libcudart.so", "libcublasLt.so", "libcublas.so", "libnvrtc",
                                    "libcudnn",     "libnccl.so",     "libcu",        "libnv"};
  std::vector<std::string> needed = needed_libraries(file);
  std::vector<std::string> companions;
  const auto take = [&companions](const std::string& soname) {
    if (std::ranges::find(companions, soname) == companions.end()) {
      companions.push_back(soname);
    }
  };
  for (const std::string_view prefix : kPrefixes) {
    for (const std::string& soname : needed) {
      if (soname.starts_with(prefix) && !soname.starts_with("libcuda.so")) {
        take(soname);
        if (soname.starts_with(kRuntime)) {
          take("libnvrtc.so." + soname.substr(kRuntime.size()));
        }
      }
    }
  }
  return companions;
}

std::vector<std::string> load_companions(const fs::path& file, const std::string& lib_dir) {
  const std::vector<fs::path> folders = search_folders(file, lib_dir);
  std::vector<std::string> missing = companions_of(file);
  // They depend on each other, so one that failed may load after the others: repeat until a round loads none.
  for (std::size_t before = missing.size() + 1; !missing.empty() && missing.size() < before;) {
    before = missing.size();
    std::erase_if(missing, [&folders](const std::string& soname) { return load_globally(soname, folders); });
  }
  return missing;
}

fs::path toolkit_with_headers(const fs::path& file) {
  if (is_set("CUDA_HOME") || is_set("NVTE_CUDA_INCLUDE_DIR")) {
    return {};
  }
  std::vector<fs::path> candidates;
  if (const auto toolkit = machine::absolute_folder("CUDA_PATH")) {
    candidates.push_back(*toolkit);
  }
  candidates.emplace_back("/usr/local/cuda");
  std::vector<fs::path> environments = {package_folder_of(file)};
  const std::vector<fs::path> others = machine::python_package_folders();
  environments.insert(environments.end(), others.begin(), others.end());
  for (const fs::path& packages : environments) {
    candidates.push_back(packages / "nvidia" / "cu13");
    candidates.push_back(packages / "nvidia" / "cuda_runtime");
  }
  const auto found = std::ranges::find_if(candidates, has_headers);
  return found == candidates.end() ? fs::path() : *found;
}

}  // namespace numcheck::kernels::transformer_engine
