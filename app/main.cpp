// Parse, dispatch, map exceptions to exit codes: the only catch-all.
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "arguments.hpp"
#include "command_line.hpp"
#include "core/error.hpp"
#include "machine/build_info.hpp"
#include "plan/diagnostic.hpp"
#include "plans.hpp"
#include "scarce_memory.hpp"
#include "stack.hpp"
#include "standard_streams.hpp"
#include "terminal.hpp"

namespace {

using numcheck::core::ExitCode;
namespace app = numcheck::app;

std::string version_page() {
  const numcheck::machine::BuildInfo& build = numcheck::machine::build_info();
  return fmt::format("te-numcheck {}\nbuilt with {} ({}), CUDA toolkit {}\n", numcheck::machine::version_text(),
                     build.compiler, build.build_type, build.cuda_toolkit.empty() ? "none" : build.cuda_toolkit);
}

ExitCode dispatch(app::CommandLine& line, app::Terminal& terminal, const std::vector<std::string>& argv) {
  if (line.common().version) {
    terminal.out(version_page());
    return ExitCode::success;
  }
  if (line.common().help) {
    terminal.out(line.help());
    return ExitCode::success;
  }
  if (line.command() == nullptr) {
    terminal.err(line.help());
    return ExitCode::usage;
  }
  app::Context context{terminal, line.common(), argv, line.cli()};
  return line.command()->run(context);
}

/// A terminal for messages about a command line whose own options are wrong.
app::Terminal plain_terminal() {
  return {app::read_terminal(), app::ColourChoice::automatic, app::ProgressChoice::never};
}

ExitCode guarded(const std::vector<std::string>& argv) {
  try {
    app::CommandLine line;
    line.parse(argv);
    const std::string& colour = line.common().colour;
    app::Terminal terminal(app::read_terminal(),
                           app::parse_colour(colour, app::set_by(colour, "--color", "TE_NUMCHECK_COLOR")),
                           app::parse_progress(line.common().progress));
    try {
      return dispatch(line, terminal, argv);
    } catch (...) {
      terminal.clear_status();
      throw;
    }
  } catch (const numcheck::plan::PlanError& error) {
    app::Terminal terminal = plain_terminal();
    app::print_diagnostics(terminal, error.diagnostics());
    terminal.err(error.summary() + "\n");
    return error.exit_code();
  } catch (const numcheck::core::Error& error) {
    plain_terminal().error(error.what(), error.notes());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    plain_terminal().error("out of memory");
    return ExitCode::environment;
  } catch (const std::exception& error) {
    plain_terminal().error(fmt::format("internal error: {}", error.what()));
    return ExitCode::environment;
  }
}

}  // namespace

int main(int argc, char** argv) {
  app::prepare_for_scarce_memory();
  app::keep_freed_memory();
  app::open_standard_streams();
  app::set_up_signals();
  return app::with_enough_stack([&] {
    return static_cast<int>(
        guarded(argc > 0 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>()));
  });
}
