// Help pages, laid out here because the layout of CLI11 differs between its versions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"

namespace numcheck::app {

/// What the program is for, in one line.
inline constexpr std::string_view kProgramSummary =
    "does this GPU compute Transformer-Engine-style ops correctly, and if not, why not";

/// One option as people read it.
struct OptionText {
  std::string words;        ///< "-k, --filter REGEX", or "    --json PATH"
  std::string description;  ///< with default and environment variable
};

struct OptionGroup {
  std::string title;
  std::vector<OptionText> options;
};

/// The options of a command, hidden ones left out, in groups. Help and the manual page show the same.
[[nodiscard]] std::vector<OptionGroup> option_groups(const CLI::App& cli);

/// What the command does, usage, examples, options in groups, exit codes.
[[nodiscard]] std::string command_help(const CLI::App& cli, const CommandInfo& info);

[[nodiscard]] std::string program_help(const CLI::App& cli, const std::vector<std::unique_ptr<Command>>& commands);

/// One line about an exit code, as documented; empty for any other.
[[nodiscard]] std::string_view exit_code_words(int code) noexcept;

/// The same for one command: 0 means something else where nothing is judged.
[[nodiscard]] std::string_view exit_code_text(const CommandInfo& info, int code) noexcept;

}  // namespace numcheck::app
