// Completion scripts for shells.
#pragma once

#include <string>
#include <vector>

#include "cli_forward.hpp"

namespace numcheck::app {

struct CompletedOption {
  std::vector<std::string> names;    ///< "-k", "--filter"
  std::vector<std::string> choices;  ///< legal values, if there is a fixed set
  bool takes_value = false;
  bool takes_path = false;
  std::string description;
};

struct CompletedCommand {
  std::string name;  ///< empty: options before the command
  std::string summary;
  std::vector<CompletedOption> options;
  std::vector<std::string> words;  ///< legal first arguments
};

/// The commands and options that the command line actually has.
[[nodiscard]] std::vector<CompletedCommand> completed_commands(const CLI::App& cli);

[[nodiscard]] std::string bash_completion(const std::vector<CompletedCommand>& commands);
[[nodiscard]] std::string zsh_completion(const std::vector<CompletedCommand>& commands);
[[nodiscard]] std::string fish_completion(const std::vector<CompletedCommand>& commands);

}  // namespace numcheck::app
