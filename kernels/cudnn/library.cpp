#include "kernels/cudnn/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace numcheck::kernels::cudnn {
namespace {

/// Folder of the cuDNN that the process has loaded; empty if it has none.
std::string loaded_folder() {
  void* handle = dlopen(cuda_support::cudnn_library().files.front(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    return {};
  }
  link_map* map = nullptr;
  std::string folder;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) {
    folder = std::filesystem::path(map->l_name).parent_path().string();
  }
  dlclose(handle);
  return folder;
}

std::string folder_to_search(const std::string& lib_dir) {
  const char* requested = std::getenv("TE_NUMCHECK_LIB_DIR");
  const bool anywhere = lib_dir.empty() && (requested == nullptr || *requested == '\0');
  return anywhere ? loaded_folder() : lib_dir;
}

/// cuDNN loads NVRTC by its bare name, so one in a folder that the loader does not search must be loaded before.
/// A missing one is not an error here: cuDNN then says what it cannot compile.
std::optional<cuda_support::SharedLibrary> load_compiler(std::size_t cudart_version, const std::string& lib_dir) {
  static constexpr std::array kNewer = {"libnvrtc.so.13"};
  static constexpr std::array kOlder = {"libnvrtc.so.12"};
  const std::span<const char* const> files = cudart_version >= 13000 ? std::span<const char* const>(kNewer) : kOlder;
  try {
    return cuda_support::SharedLibrary({"nvrtc", files}, lib_dir);
  } catch (const core::EnvironmentError&) {
    return std::nullopt;
  }
}

std::string place(const std::source_location& where) {
  return fmt::format("{}:{}", std::filesystem::path(where.file_name()).filename().string(), where.line());
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n.";
  const std::size_t first = text.find_first_not_of(kSpace);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

}  // namespace

CudnnError::CudnnError(Status status, std::string_view call, std::string reason, const std::source_location& where)
    : EnvironmentError(fmt::format("{} failed: {} at {}", call, reason, place(where))),
      status_(status),
      reason_(std::move(reason)) {}

Complaint first_complaint(std::string_view text) {
  constexpr std::string_view kMark = "; Reason: ";
  const std::size_t mark = text.find(kMark);
  if (mark == std::string_view::npos) {
    return {"", std::string(trimmed(text))};
  }
  const std::string_view before = text.substr(0, mark);
  const std::size_t space = before.find_last_of(" \n");
  const std::string_view after = text.substr(mark + kMark.size());
  return {std::string(space == std::string_view::npos ? before : before.substr(space + 1)),
          std::string(trimmed(after.substr(0, after.find('\n'))))};
}

Library::Library(const std::string& lib_dir) : library_(cuda_support::cudnn_library(), folder_to_search(lib_dir)) {
  compiler_ = load_compiler(get_cudart_version(), lib_dir);
}

std::string Library::version() const {
  // major * 10000 + minor * 100 + patch since 9.0.
  const std::size_t version = get_version();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Complaint Library::complaint() const {
  std::array<char, 4096> words{};
  get_last_error_string(words.data(), words.size() - 1);
  return first_complaint(words.data());
}

std::string Library::last_complaint() const {
  const Complaint found = complaint();
  return found.status.empty() ? found.reason : fmt::format("{} ({})", found.status, found.reason);
}

void Library::check(Status status, std::string_view call, const std::source_location& where) const {
  if (status == kSuccess) {
    return;
  }
  const std::string name = get_error_string(status);
  const std::string words = complaint().reason;
  throw CudnnError(status, call, words.empty() ? name : fmt::format("{} ({})", name, words), where);
}

Handle::Handle(const Library& library, Stream stream) : library_(library) {
  library_.check(library_.create(&handle_), "cudnnCreate");
  if (const Status status = library_.set_stream(handle_, stream); status != kSuccess) {
    library_.destroy(handle_);
    library_.check(status, "cudnnSetStream");
  }
}

Handle::~Handle() {
  library_.destroy(handle_);
}

}  // namespace numcheck::kernels::cudnn
