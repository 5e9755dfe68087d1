// --te-lib: which TransformerEngine libraries a run is about. If there are several, each is a backend of its own.
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

/// With several libraries, one case for each in place of every case of transformer_engine; otherwise the cases
/// unchanged. Throws like require_te_libs.
[[nodiscard]] std::vector<plan::Case> for_every_te_lib(std::vector<plan::Case> cases,
                                                       const std::vector<std::string>& paths);

/// Like for_every_te_lib; if the identifier names a version ("…/transformer_engine@2.20.2/…"), for that one.
[[nodiscard]] std::vector<plan::Case> for_identifier(std::vector<plan::Case> cases, std::string_view identifier,
                                                     const std::vector<std::string>& paths);

}  // namespace numcheck::app
