// te-numcheck completion: scripts for shells, generated from the command line's definition.
#include <CLI/CLI.hpp>

#include "arguments.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "completion_scripts.hpp"

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

  void add_options(CLI::App& cli) override { cli.add_option("shell", shell_, "bash, zsh or fish")->type_name("SHELL"); }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    if (shell_.empty()) {
      throw core::UsageError("completion: name a shell: bash, zsh or fish");
    }
    require_known(shell_, "shell", kInfo.words);
    const std::vector<CompletedCommand> commands = completed_commands(context.cli);
    context.terminal.data(shell_ == "bash"  ? bash_completion(commands)
                          : shell_ == "zsh" ? zsh_completion(commands)
                                            : fish_completion(commands));
    return core::ExitCode::success;
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> make_completion_command() {
  return std::make_unique<CompletionCommand>();
}

}  // namespace numcheck::app::commands
