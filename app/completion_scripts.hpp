// Completion scripts for shells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli_forward.hpp"
#include "completion_values.hpp"

namespace numcheck::app {

struct CompletedOption {
  std::vector<std::string> names;  ///< "-k", "--filter"
  OfferedValues values;
  bool takes_value = false;
  bool takes_path = false;
  std::string description;
};

struct CompletedCommand {
  std::string name;  ///< empty: options before the command
  std::string summary;
  std::vector<CompletedOption> options;
  std::vector<std::string> words;  ///< legal first arguments
  bool takes_plans = false;        ///< its other arguments are plans, by name or as files
};

/// The commands and options that the command line actually has.
[[nodiscard]] std::vector<CompletedCommand> completed_commands(const CLI::App& cli);

[[nodiscard]] std::string bash_completion(const std::vector<CompletedCommand>& commands);
[[nodiscard]] std::string zsh_completion(const std::vector<CompletedCommand>& commands);
[[nodiscard]] std::string fish_completion(const std::vector<CompletedCommand>& commands);

/// For use inside a shell's single quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// All names of the options, "-k --filter ...".
[[nodiscard]] std::string all_names(const std::vector<CompletedOption>& options);

}  // namespace numcheck::app
