// Help pages, laid out here because the layout of CLI11 differs between its versions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command.hpp"

namespace numcheck::app {

/// What the command does, usage, examples, options in groups, exit codes.
[[nodiscard]] std::string command_help(const CLI::App& cli, const CommandInfo& info);

[[nodiscard]] std::string program_help(const CLI::App& cli, const std::vector<std::unique_ptr<Command>>& commands);

/// One line about an exit code, as documented; empty for any other.
[[nodiscard]] std::string_view exit_code_words(int code) noexcept;

}  // namespace numcheck::app
