// Variables that name folders in which libraries are searched. Only absolute entries count: a relative or empty one
// means the working folder, and whoever can put a file there could have it loaded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace numcheck::machine {

/// The absolute entries of a list such as PYTHONPATH, in order.
[[nodiscard]] std::vector<std::filesystem::path> absolute_entries(const char* variable);

/// The folder that a variable such as VIRTUAL_ENV names; nothing if it is unset, empty or relative.
[[nodiscard]] std::optional<std::filesystem::path> absolute_folder(const char* variable);

/// An entry that absolute_entries() and absolute_folder() leave out.
struct IgnoredEntry {
  std::string variable;
  std::string entry;  ///< may be empty
};

/// For all variables that say where libraries are, except entries that are empty because the variable is.
[[nodiscard]] std::vector<IgnoredEntry> ignored_entries();

}  // namespace numcheck::machine
