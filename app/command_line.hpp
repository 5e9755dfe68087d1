// The command line: CLI11 parses, we report the mistakes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command.hpp"

namespace numcheck::app {

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Throws core::UsageError with a suggestion for unknown commands and options. CLI11's own texts and exit codes are
  /// not shown, because they depend on its version.
  void parse(const std::vector<std::string>& argv);

  [[nodiscard]] const CommonOptions& common() const noexcept { return common_; }
  /// The chosen command, or null.
  [[nodiscard]] Command* command() const noexcept { return command_; }
  /// Help of the chosen command, or of the program.
  [[nodiscard]] std::string help() const;
  [[nodiscard]] const CLI::App& cli() const noexcept { return *cli_; }

 private:
  void reject_leftovers() const;
  void reject_unknown_command() const;

  CommonOptions common_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::unique_ptr<CLI::App> cli_;
  Command* command_ = nullptr;
};

}  // namespace numcheck::app
