// The loaded library: its functions by name, and its exceptions converted to ours.
#pragma once

#include <exception>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "kernels/transformer_engine/find.hpp"
#include "kernels/transformer_engine/interface.hpp"

namespace numcheck::kernels::transformer_engine {

/// True if an error text of the library says that it does not support the case, rather than that something broke.
[[nodiscard]] bool is_refusal(std::string_view text);

/// "nvte_gelu: reason (file.cu:12)" from "path/file.cu:12 in function f: reason".
[[nodiscard]] std::string error_text(std::string_view function, std::string_view text);

/// The core library of one TransformerEngine, loaded for the life of the process. May be used from any thread.
class Library {
 public:
  /// Loads what the library needs (NVRTC, cuDNN, cuBLAS, NCCL; searched in `lib_dir`, next to the package, in CUDA's
  /// and in Python's folders) with global visibility, which it relies on, and then the library itself with lazy
  /// binding: a build may name functions that this machine's cuBLASLt lacks. Throws core::EnvironmentError with the
  /// loader's message and what was not found.
  Library(Installed installed, const std::string& lib_dir);

  /// "2.20.2", or "of unknown version".
  [[nodiscard]] std::string version() const;
  /// Whether the release is at least this one; nothing if it is unknown.
  [[nodiscard]] std::optional<bool> at_least(int major, int minor) const;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return installed_.file; }

  [[nodiscard]] bool has(std::string_view function) const { return address(function) != nullptr; }

  /// A sentence if the library lacks one of the functions; empty if it has all.
  [[nodiscard]] std::string lacks(std::initializer_list<std::string_view> functions) const;

  /// Calls a function. Throws NotSupported if the library has none by that name or refuses the case, and
  /// core::EnvironmentError with its message if it fails otherwise.
  template <class Result, class... Parameters>
  Result call(const Function<Result(Parameters...)>& function, std::type_identity_t<Parameters>... arguments) const {
    const auto pointer = reinterpret_cast<Result (*)(Parameters...)>(required(function.name));
    try {
      return pointer(std::forward<Parameters>(arguments)...);
    } catch (const std::exception& error) {
      raise(function.name, error.what());
    } catch (...) {
      raise(function.name, "an exception of an unknown kind");
    }
  }

 private:
  [[nodiscard]] void* address(std::string_view function) const;
  [[nodiscard]] void* required(std::string_view function) const;
  [[noreturn]] static void raise(std::string_view function, std::string_view text);

  Installed installed_;
  void* handle_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string_view, void*> addresses_;
};

/// A function's name as in its header: exported names of C++ functions are mangled.
[[nodiscard]] std::string readable_name(std::string_view function);

}  // namespace numcheck::kernels::transformer_engine
