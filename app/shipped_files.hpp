// Files that come with the program: plans by name, and "configs/..." wherever they are installed.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace numcheck::app {

/// A word that could be the name of a shipped plan: "acceptance".
[[nodiscard]] bool is_plan_name(const std::string& path);

/// Names and files of the shipped plans.
[[nodiscard]] std::map<std::string, std::filesystem::path> shipped_plans();

/// The path itself, or the shipped file for "configs/..." that does not exist here, so that documented commands work
/// from any folder.
[[nodiscard]] std::filesystem::path found_file(const std::string& path);

/// The file of a plan: the path itself, or the shipped plan of that name ("acceptance"); a folder may have the name of a
/// plan, as one with its results does. Throws core::UsageError if it is a name, but of no plan.
[[nodiscard]] std::filesystem::path found_plan(const std::string& path);

}  // namespace numcheck::app
