#include "te_libraries.hpp"

#include <filesystem>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "arguments.hpp"
#include "core/error.hpp"
#include "kernels/transformer_engine/versions.hpp"
#include "plan/backend_name.hpp"

namespace numcheck::app {

void add_te_lib_option(CLI::App& cli, std::vector<std::string>& paths) {
  cli.add_option("--te-lib", paths,
                 "TransformerEngine's library [the installed one]; repeated: compare versions bit by bit")
      ->type_name("PATH")
      ->allow_extra_args(false)
      ->envname("TE_NUMCHECK_TE_LIB")
      ->group("Device");
}

void require_te_libs(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      throw core::UsageError(
          fmt::format("{}: {} does not exist", set_by(path, "--te-lib", "TE_NUMCHECK_TE_LIB"), path));
    }
  }
}

std::vector<std::string> te_backend_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (kernels::transformer_engine::NamedLibrary& library : kernels::transformer_engine::name_libraries(paths)) {
    names.push_back(std::move(library.backend));
  }
  return names;
}

std::vector<plan::Case> for_every_te_lib(std::vector<plan::Case> cases, const std::vector<std::string>& paths) {
  require_te_libs(paths);
  if (paths.size() <= 1) {
    return cases;
  }
  return plan::one_case_per_version(std::move(cases), kernels::transformer_engine::kBackend, te_backend_names(paths));
}

std::vector<plan::Case> for_identifier(std::vector<plan::Case> cases, std::string_view identifier,
                                       const std::vector<std::string>& paths) {
  const std::string versioned = fmt::format("/{}@", kernels::transformer_engine::kBackend);
  const std::size_t at = identifier.find(versioned);
  if (at == std::string_view::npos || paths.size() > 1) {
    return for_every_te_lib(std::move(cases), paths);
  }
  const std::string_view rest = identifier.substr(at + 1);
  const std::vector<std::string> names = {std::string(rest.substr(0, rest.find('/')))};
  if (!plan::is_backend_name(names.front()) || plan::version_of(names.front()).empty()) {
    throw core::UsageError(fmt::format("explain: {} has no version after the @, as in {}@2.20.2", names.front(),
                                       kernels::transformer_engine::kBackend));
  }
  if (paths.size() == 1 && te_backend_names(paths) != names) {
    throw core::UsageError(fmt::format("explain: --te-lib is {}, but the case belongs to {}",
                                       te_backend_names(paths).front(), names.front()));
  }
  return plan::one_case_per_version(std::move(cases), kernels::transformer_engine::kBackend, names);
}

}  // namespace numcheck::app
