// --te-lib: the TransformerEngine libraries that a run uses. If there are several, each becomes a backend of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli_forward.hpp"
#include "plan/case.hpp"

namespace numcheck::app {

void add_te_lib_option(CLI::App& cli, std::vector<std::string>& paths);

/// Throws core::UsageError for a path that does not exist.
void require_te_libs(const std::vector<std::string>& paths);

/// "transformer_engine@2.20.2" for each path.
[[nodiscard]] std::vector<std::string> te_backend_names(const std::vector<std::string>& paths);

/// With several libraries, replaces every case of transformer_engine by one case for each; otherwise returns the cases
/// unchanged. Throws like require_te_libs.
[[nodiscard]] std::vector<plan::Case> for_every_te_lib(std::vector<plan::Case> cases,
                                                       const std::vector<std::string>& paths);

/// Like for_every_te_lib, but if the identifier names a version ("…/transformer_engine@2.20.2/…"), for that one only.
[[nodiscard]] std::vector<plan::Case> for_identifier(std::vector<plan::Case> cases, std::string_view identifier,
                                                     const std::vector<std::string>& paths);

}  // namespace numcheck::app
