// te-numcheck man: the manual page, generated from the command line's definition. Installation calls it.
#include <CLI/CLI.hpp>

#include "command.hpp"
#include "commands/commands.hpp"
#include "manual_page.hpp"

namespace numcheck::app::commands {
namespace {

const CommandInfo kInfo{
    .name = "man",
    .summary = "print the manual page, for man",
    .usage = "[OPTIONS]",
    .examples = {"man | man -l -", "man > ~/.local/share/man/man1/te-numcheck.1"},
    .exit_codes = {0, 2},
};

class ManCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App&) override {}

  [[nodiscard]] core::ExitCode run(Context& context) override {
    context.terminal.data(manual_page(context.cli));
    return core::ExitCode::success;
  }
};

}  // namespace

std::unique_ptr<Command> make_man_command() {
  return std::make_unique<ManCommand>();
}

}  // namespace numcheck::app::commands
