// The words of a command line, before CLI11 reads them.
#pragma once

#include <string>
#include <vector>

#include "cli_forward.hpp"

namespace numcheck::app {

/// The same command line in forms that CLI11 reads as people mean them: "help run" as "run --help"; "-k=bf16" as
/// "-kbf16"; a count for a flag that may have one ("-x3", "-x 3", "-x=3", "--fail-fast 3") as "--fail-fast=3". Throws
/// core::UsageError for a value at a flag that takes none, and for an empty one.
[[nodiscard]] std::vector<std::string> understood_words(const std::vector<std::string>& argv, const CLI::App& cli);

/// Whether the option is a flag that may have a count after it.
[[nodiscard]] bool has_optional_count(const CLI::Option& option);

}  // namespace numcheck::app
