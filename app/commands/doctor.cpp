// te-numcheck doctor: what this machine offers, what is missing and how to get it.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "commands/commands.hpp"
#include "core/printable.hpp"
#include "doctor_facts.hpp"
#include "doctor_json.hpp"
#include "execution_options.hpp"
#include "inspect_apart.hpp"
#include "machine/build_info.hpp"
#include "report/views/text_table.hpp"
#include "screen_text.hpp"

namespace numcheck::app::commands {
namespace {

using report::views::Colour;

const CommandInfo kInfo{
    .name = "doctor",
    .summary = "check device, driver, libraries and every variable that changes numbers",
    .usage = "[OPTIONS]",
    .examples = {"doctor", "doctor --device cuda:0", "doctor --json"},
    .exit_codes = {0, 2, 3},
};

std::string finding_line(const Finding& finding, bool colour) {
  const auto [word, paint] = finding.kind == Finding::Kind::ok     ? std::pair("ok  ", Colour::green)
                             : finding.kind == Finding::Kind::note ? std::pair("note", Colour::yellow)
                                                                   : std::pair("BAD ", Colour::red);
  return fmt::format("{}  {:<18} {}\n", report::views::paint(word, paint, colour), core::printable(finding.subject),
                     core::printable(finding.sentence));
}

std::string variables_text(const std::vector<machine::VariableState>& variables, bool colour) {
  std::string text = "\nvariables that change numbers\n";
  for (const machine::VariableState& variable : variables) {
    const std::string value = variable.value.has_value()
                                  ? report::views::paint(core::printable(*variable.value), Colour::yellow, colour)
                                  : "unset";
    text += fmt::format(
        "  {:<48} {}{}\n", core::printable(variable.name), value,
        variable.listed ? "" : "   (unknown to te-numcheck, but its name suggests that it may change numbers)");
  }
  return text;
}

std::string page(const DoctorFacts& facts, const std::vector<Finding>& findings, bool quiet, bool colour) {
  std::string text = "te-numcheck " + machine::version_text() + "\n";
  for (const Finding& finding : findings) {
    if (!quiet || finding.kind == Finding::Kind::bad) {
      text += finding_line(finding, colour);
    }
  }
  return quiet ? text : text + variables_text(facts.variables, colour);
}

class DoctorCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override {
    cli.add_flag("--json", json_, "print one JSON object (te-numcheck schema doctor); it has absolute paths")
        ->group("Output");
    add_device_options(cli, options_);
    cli.add_option("--inspect", inspect_, "")->group("");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    if (!inspect_.empty()) {
      answer_inspection(inspect_, options_.te_libs.empty() ? "" : options_.te_libs.front(), options_.lib_dir);
      return core::ExitCode::success;
    }
    const DoctorFacts facts = doctor_facts(options_);
    const std::vector<Finding> findings = doctor_findings(facts);
    if (json_) {
      context.terminal.data(stdout_json(doctor_json(facts, findings), 2));
    } else {
      context.terminal.out(page(facts, findings, context.common.quiet, context.terminal.colour_on_stdout()));
    }
    return is_unusable(findings) ? core::ExitCode::environment : core::ExitCode::success;
  }

 private:
  ExecutionOptions options_;
  bool json_ = false;
  std::string inspect_;  ///< the library that this process inspects for another doctor
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() {
  return std::make_unique<DoctorCommand>();
}

}  // namespace numcheck::app::commands
