// Help pages. Our own, because CLI11's layout differs between its versions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command.hpp"

namespace numcheck::app {

/// What it does, usage, examples, options in groups, exit codes.
[[nodiscard]] std::string command_help(const CLI::App& cli, const CommandInfo& info);

[[nodiscard]] std::string program_help(const CLI::App& cli, const std::vector<std::unique_ptr<Command>>& commands);

/// Name and one line of an exit code, as documented.
[[nodiscard]] std::string_view exit_code_words(int code) noexcept;

}  // namespace numcheck::app
