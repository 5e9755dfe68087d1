// Where Python keeps packages on this machine: NVIDIA's libraries and TransformerEngine are often installed by pip.
#pragma once

#include <filesystem>
#include <vector>

namespace numcheck::machine {

/// Folders of Python packages that exist, those of the active environment first: PYTHONPATH, VIRTUAL_ENV, CONDA_PREFIX,
/// the prefix of the first python3 on PATH, the user's own folder, and the system's. No relative entries: those would be
/// below the working folder.
[[nodiscard]] std::vector<std::filesystem::path> python_package_folders();

/// Only those of the environment that VIRTUAL_ENV or CONDA_PREFIX names.
[[nodiscard]] std::vector<std::filesystem::path> active_python_package_folders();

}  // namespace numcheck::machine
