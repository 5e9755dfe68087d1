#include "kernels/transformer_engine/library.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/contract/backend.hpp"
#include "kernels/transformer_engine/companions.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return out;
}

std::string loader_error() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

}  // namespace

bool is_refusal(std::string_view text) {
  // An error of the driver or of a compiler is a failure, whatever its wording.
  constexpr std::array kFailures = {"cuda error", "nvrtc error", "out of memory"};
  constexpr std::array kRefusals = {"unsupported",       "not supported",  "does not support", "not implemented",
                                    "no implementation", "unable to find", "unavailable",      "shared memory size"};
  const std::string words = lower(text);
  const auto says = [&words](const char* phrase) { return words.find(phrase) != std::string::npos; };
  return std::ranges::none_of(kFailures, says) && std::ranges::any_of(kRefusals, says);
}

std::string error_text(std::string_view function, std::string_view text) {
  constexpr std::string_view kMark = " in function ";
  const std::size_t mark = text.find(kMark);
  const std::size_t colon = mark == std::string_view::npos ? mark : text.find(": ", mark);
  if (colon == std::string_view::npos) {
    return fmt::format("{}: {}", readable_name(function), text);
  }
  std::string_view place = text.substr(0, mark);
  place.remove_prefix(place.rfind('/') == std::string_view::npos ? 0 : place.rfind('/') + 1);
  std::string_view reason = text.substr(colon + 2);
  while (!reason.empty() && (reason.back() == ' ' || reason.back() == '.')) {
    reason.remove_suffix(1);
  }
  return fmt::format("{}: {} ({})", readable_name(function), reason, place);
}

std::string readable_name(std::string_view function) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(std::string(function).c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0) {
    return std::string(function);
  }
  const std::string_view name = plain.get();
  return std::string(name.substr(0, name.find('(')));
}

Library::Library(Installed installed, const std::string& lib_dir) : installed_(std::move(installed)) {
  const std::vector<std::string> missing = load_companions(installed_.file, lib_dir);
  // NODELETE: it registers handlers with the driver and with the C++ runtime that must not outlive their code.
  handle_ = dlopen(installed_.file.c_str(), RTLD_LAZY | RTLD_GLOBAL | RTLD_NODELETE);
  if (handle_ == nullptr) {
    const std::string words = loader_error();
    throw core::EnvironmentError(
        fmt::format("TransformerEngine {} ({}) does not load: {}{}", version(), installed_.file.string(), words,
                    missing.empty() ? std::string()
                                    : fmt::format("; not found: {} (install the packages that TransformerEngine "
                                                  "depends on, or give their folder with --lib-dir)",
                                                  fmt::join(missing, ", "))));
  }
  if (std::string problem = lacks({kCreateTensor.name, kTensorShape.name, kGemm.name}); !problem.empty()) {
    throw core::EnvironmentError(fmt::format("{} is not a core library of TransformerEngine {}.{} or newer: {}",
                                             installed_.file.string(), kFirstMajor, kFirstMinor, problem));
  }
}

std::string Library::version() const {
  return installed_.version.has_value() ? installed_.version->text : "of unknown version";
}

std::optional<bool> Library::at_least(int major, int minor) const {
  return installed_.version.has_value() ? std::optional(installed_.version->at_least(major, minor)) : std::nullopt;
}

std::string Library::lacks(std::initializer_list<std::string_view> functions) const {
  for (const std::string_view function : functions) {
    if (!has(function)) {
      return fmt::format("TransformerEngine {} has no {}; install a version that has it", version(),
                         readable_name(function));
    }
  }
  return {};
}

void* Library::address(std::string_view function) const {
  const std::scoped_lock lock(mutex_);
  const auto known = addresses_.find(function);
  if (known != addresses_.end()) {
    return known->second;
  }
  void* found = dlsym(handle_, std::string(function).c_str());
  addresses_.emplace(function, found);
  return found;
}

void* Library::required(std::string_view function) const {
  void* found = address(function);
  if (found == nullptr) {
    throw NotSupported(lacks({function}));
  }
  return found;
}

void Library::raise(std::string_view function, std::string_view text) {
  if (is_refusal(text)) {
    throw NotSupported("TransformerEngine says: " + error_text(function, text));
  }
  throw core::EnvironmentError(error_text(function, text));
}

}  // namespace numcheck::kernels::transformer_engine
