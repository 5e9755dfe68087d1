#include "kernels/transformer_engine/versions.hpp"

#include <map>
#include <optional>

#include <fmt/format.h>

#include "kernels/transformer_engine/find.hpp"
#include "plan/backend_name.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

/// 0 -> "a", 25 -> "z", 26 -> "aa".
std::string letters(std::size_t number) {
  const std::string last(1, static_cast<char>('a' + number % 26));
  return number < 26 ? last : letters(number / 26 - 1) + last;
}

}  // namespace

std::vector<NamedLibrary> name_libraries(std::span<const std::string> paths) {
  // Builds from a checkout have long versions; this leaves room for the letters.
  constexpr std::size_t kLongest = 32;
  std::vector<NamedLibrary> named;
  std::map<std::string, std::size_t> count_of;
  for (const std::string& path : paths) {
    const std::optional<Version> version = version_at(path);
    const std::string text = version.has_value() ? version->text.substr(0, kLongest) : "unknown";
    named.push_back({plan::versioned_backend(kBackend, text), path});
    ++count_of[named.back().backend];
  }
  std::map<std::string, std::size_t> seen;
  for (NamedLibrary& library : named) {
    if (count_of[library.backend] > 1) {
      library.backend += "-" + letters(seen[library.backend]++);
    }
  }
  return named;
}

Choice choose_library(std::span<const std::string> paths, std::string_view version) {
  if (version.empty()) {
    return {{paths.begin(), paths.end()}, {}};
  }
  const std::string backend = plan::versioned_backend(kBackend, version);
  std::string names;
  for (const NamedLibrary& library : name_libraries(paths)) {
    if (library.backend == backend) {
      return {{library.path}, {}};
    }
    names += (names.empty() ? "" : ", ") + library.backend;
  }
  return {{}, fmt::format("no --te-lib is {}{}", backend, names.empty() ? "" : "; choose from: " + names)};
}

}  // namespace numcheck::kernels::transformer_engine
