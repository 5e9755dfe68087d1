// One command of the command line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli_forward.hpp"
#include "core/error.hpp"
#include "terminal.hpp"

namespace numcheck::app {

/// What help and completion say about a command, apart from its options.
struct CommandInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view usage;  ///< after the name: "[OPTIONS] PLAN..."
  std::vector<std::string_view> examples;
  std::vector<int> exit_codes;
  std::vector<std::string_view> words = {};  ///< legal first arguments, if there is a fixed set
  bool takes_files = false;
};

/// Options that every command has.
struct CommonOptions {
  bool help = false;
  bool version = false;
  bool quiet = false;
  int verbose = 0;
  std::string colour;  ///< as given; after parsing never empty
  std::string progress = "auto";

  /// -1 with -q, otherwise the number of -v.
  [[nodiscard]] int verbosity() const noexcept { return quiet ? -1 : verbose; }
};

struct Context {
  Terminal& terminal;
  const CommonOptions& common;
  const std::vector<std::string>& argv;  ///< without the program's name
  const CLI::App& cli;                   ///< the whole command line, for completion
};

class Command {
 public:
  virtual ~Command() = default;
  [[nodiscard]] virtual const CommandInfo& info() const = 0;
  virtual void add_options(CLI::App& cli) = 0;
  [[nodiscard]] virtual core::ExitCode run(Context& context) = 0;
};

namespace commands {

/// All commands, in the order in which help shows them.
[[nodiscard]] std::vector<std::unique_ptr<Command>> make_all();

}  // namespace commands

}  // namespace numcheck::app
