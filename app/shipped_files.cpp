#include "shipped_files.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "core/strings.hpp"

namespace numcheck::app {
namespace {

constexpr std::array<const char*, 2> kPlanFolders = {"configs/plans", "configs/plans/scenarios"};

/// Where shipped files are: here, as in the source tree; in the installation; and in the source tree that the program
/// was built in.
std::vector<std::filesystem::path> roots() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<std::filesystem::path> roots = {{}, (folder / "../share/te-numcheck").lexically_normal()};
  for (auto above = folder; above.has_relative_path(); above = above.parent_path()) {
    if (std::filesystem::is_regular_file(above / kPlanFolders.front() / "quick.json", error)) {
      roots.push_back(above);
      break;
    }
  }
  return roots;
}

[[noreturn]] void refuse_name(const std::string& name) {
  std::error_code error;
  if (std::filesystem::is_directory(name, error)) {
    throw core::UsageError(fmt::format("{} is a folder; name a plan in it", core::printable(name)));
  }
  const std::map<std::string, std::filesystem::path> shipped = shipped_plans();
  std::vector<std::string_view> names;
  names.reserve(shipped.size());
  for (const auto& [known, path] : shipped) {
    names.push_back(known);
  }
  const std::string_view nearest = core::nearest_name(name, names);
  throw core::UsageError(fmt::format("no plan is named \"{}\"{}{}", core::printable(name),
                                     nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                                     names.empty() ? "" : fmt::format("; plans are: {}", fmt::join(names, " "))));
}

}  // namespace

bool is_plan_name(const std::string& path) {
  return !path.empty() && path.find_first_of("/.") == std::string::npos;
}

std::map<std::string, std::filesystem::path> shipped_plans() {
  std::map<std::string, std::filesystem::path> plans;
  for (const std::filesystem::path& root : roots()) {
    for (const char* folder : kPlanFolders) {
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(root / folder, error)) {
        if (entry.path().extension() == ".json" && entry.is_regular_file(error)) {
          plans.try_emplace(entry.path().stem().string(), entry.path());
        }
      }
    }
  }
  return plans;
}

std::filesystem::path found_file(const std::string& path) {
  std::error_code error;
  if (!path.starts_with("configs/") || std::filesystem::exists(path, error)) {
    return path;
  }
  for (const std::filesystem::path& root : roots()) {
    if (std::filesystem::is_regular_file(root / path, error)) {
      return root / path;
    }
  }
  return path;
}

std::filesystem::path found_plan(const std::string& path) {
  if (!is_plan_name(path)) {
    return found_file(path);
  }
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error)) {
    return path;
  }
  const std::map<std::string, std::filesystem::path> shipped = shipped_plans();
  const auto found = shipped.find(path);
  if (found == shipped.end()) {
    refuse_name(path);
  }
  return found->second;
}

}  // namespace numcheck::app
