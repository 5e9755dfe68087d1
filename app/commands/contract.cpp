// te-numcheck contract: what stored reports promise; needs no device.
#include "report/contract.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "commands/commands.hpp"
#include "core/file.hpp"
#include "core/parallel.hpp"
#include "files.hpp"
#include "output_checks.hpp"

namespace numcheck::app::commands {
namespace {

const CommandInfo kInfo{
    .name = "contract",
    .summary = "write the contract of what ran in reports, full or brief, for run --contract",
    .usage = "[OPTIONS] REPORT...",
    .examples = {"contract report.json", "contract baselines/h200-*.json --out contracts/sm_90.json"},
    .exit_codes = {0, 2, 3},
    .takes_files = true,
};

class ContractCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override {
    cli.add_option("reports", reports_, "reports of one architecture; each becomes a part about its plan")
        ->type_name("REPORT");
    cli.add_option("--out", out_, "write it to this file instead of stdout")->type_name("PATH")->group("Output");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    if (reports_.empty()) {
      throw core::UsageError("contract: name the reports: te-numcheck contract REPORT...");
    }
    if (!out_.empty()) {
      check_requested_files({{"--out", out_}}, reports_);
    }
    std::vector<nlohmann::json> reports(reports_.size());
    core::parallel_for(reports.size(), [&](std::size_t i) { reports[i] = read_report(reports_[i]); });
    std::vector<const nlohmann::json*> parts;
    std::ranges::transform(reports, std::back_inserter(parts), [](const nlohmann::json& report) { return &report; });
    const std::string text = report::contract_text(report::contract_of(parts));
    out_.empty() || out_ == "-" ? context.terminal.data(text) : core::write_file(out_, text);
    return core::ExitCode::success;
  }

 private:
  std::vector<std::string> reports_;
  std::string out_;
};

}  // namespace

std::unique_ptr<Command> make_contract_command() {
  return std::make_unique<ContractCommand>();
}

}  // namespace numcheck::app::commands
