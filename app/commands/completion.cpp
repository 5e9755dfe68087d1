// te-numcheck completion: scripts for shells, generated from the command line's definition.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "arguments.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "completion_scripts.hpp"
#include "completion_values.hpp"

namespace numcheck::app::commands {
namespace {

const CommandInfo kInfo{
    .name = "completion",
    .summary = "print a completion script for a shell",
    .usage = "bash|zsh|fish",
    .examples = {"completion bash > ~/.local/share/bash-completion/completions/te-numcheck",
                 "completion fish > ~/.config/fish/completions/te-numcheck.fish"},
    .exit_codes = {0, 2},
    .words = {"bash", "zsh", "fish"},
};

class CompletionCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override {
    cli.add_option("shell", shell_, "bash, zsh or fish")->type_name("SHELL");
    cli.add_option("words", words_, "")->group("");
    cli.add_option("--values", values_, "")->group("");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    if (!values_.empty()) {
      words_.insert(words_.begin(), shell_);
      answer(context);
      return core::ExitCode::success;
    }
    if (shell_.empty()) {
      throw core::UsageError("completion: name a shell: bash, zsh or fish");
    }
    if (!words_.empty()) {
      throw core::UsageError(fmt::format("completion: unexpected argument \"{}\"", words_.front()));
    }
    require_known(shell_, "shell", kInfo.words);
    const std::vector<CompletedCommand> commands = completed_commands(context.cli);
    context.terminal.data(shell_ == "bash"  ? bash_completion(commands)
                          : shell_ == "zsh" ? zsh_completion(commands)
                                            : fish_completion(commands));
    return core::ExitCode::success;
  }

 private:
  /// For the scripts: one value a line, for the command line in words_.
  void answer(Context& context) const {
    std::string text;
    for (const std::string& value : asked_values(values_, words_)) {
      text += value + "\n";
    }
    context.terminal.data(text);
  }

  std::string shell_;
  std::vector<std::string> words_;
  std::string values_;  ///< what a script asks for
};

}  // namespace

std::unique_ptr<Command> make_completion_command() {
  return std::make_unique<CompletionCommand>();
}

}  // namespace numcheck::app::commands
