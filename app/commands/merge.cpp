// te-numcheck merge: the reports of a run's shards as one report, and its verdict; needs no device.
#include "report/merge.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "commands/commands.hpp"
#include "contract_option.hpp"
#include "core/error.hpp"
#include "gate_options.hpp"
#include "output_checks.hpp"
#include "report/gate_findings.hpp"
#include "report/parse_report.hpp"
#include "report/report.hpp"
#include "report_output.hpp"
#include "shard_files.hpp"

namespace numcheck::app::commands {
namespace {

const CommandInfo kInfo{
    .name = "merge",
    .summary = "join the reports of a run's shards; refuses unless all are there and fit together",
    .usage = "[OPTIONS] REPORT...",
    .examples = {"merge shard-*/report.json --out whole", "merge 1.json 2.json --json whole.json --junit junit.xml"},
    .exit_codes = {0, 1, 2, 3, 4},
    .takes_files = true,
};

class MergeCommand : public Command {
 public:
  MergeCommand() { output_.no_save = true; }

  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override {
    cli.add_option("reports", reports_, "the reports of all shards, all of them full or all brief, in any order")
        ->type_name("REPORT");
    add_view_options(cli, output_);
    cli.add_option("--out", output_.out, "folder for the merged report.json")->type_name("DIR")->group("Output");
    cli.add_flag("--wide", output_.wide, "do not cut identifiers to fit the terminal")->group("Output");
    add_contract_option(cli, contract_);
    add_gate_options(cli, gates_);
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    const report::GatePolicy policy = gates_.policy();
    if (reports_.empty()) {
      throw core::UsageError("merge: name the reports of all shards: te-numcheck merge REPORT...");
    }
    output_.no_save = output_.out.empty();
    check_output_options(output_);
    std::vector<std::string> sources = reports_;
    sources.push_back(contract_);
    require_sources_untouched(output_, sources, "which is read");
    ShardFiles files;
    std::vector<report::NamedReport> reports = read(files);
    const std::vector<ShardContract> contracts = contracts_of(reports);
    nlohmann::json report = report::merge_reports(std::move(reports));
    try {
      return judge(context, files, contracts, report, policy);
    } catch (const nlohmann::json::exception& error) {
      throw core::IoError(fmt::format("a report lacks what is shown: {}", report::missing_text(error)));
    }
  }

 private:
  [[nodiscard]] std::vector<report::NamedReport> read(ShardFiles& files) const {
    std::vector<report::NamedReport> reports = files.read(reports_);
    const auto promised =
        std::ranges::find_if(reports, [](const report::NamedReport& one) { return one.report.contains("contract"); });
    if (contract_.empty() && promised != reports.end()) {
      throw core::UsageError(
          fmt::format("{} was run with --contract: give it here as well, for the whole", promised->name));
    }
    const auto compared =
        std::ranges::find_if(reports, [](const report::NamedReport& one) { return one.report.contains("comparison"); });
    if (compared != reports.end()) {
      throw core::UsageError(
          fmt::format("{} was compared with a baseline, which says nothing of the whole: run shards "
                      "without it, and compare the merged report",
                      compared->name));
    }
    return reports;
  }

  static std::vector<ShardContract> contracts_of(const std::vector<report::NamedReport>& reports) {
    std::vector<ShardContract> contracts;
    for (const report::NamedReport& one : reports) {
      contracts.push_back({one.name, one.report.value("contract", nlohmann::json())});
    }
    return contracts;
  }

  core::ExitCode judge(Context& context, const ShardFiles& files, const std::vector<ShardContract>& contracts,
                       nlohmann::json& report, const report::GatePolicy& policy) const {
    if (report.value("brief", false)) {
      require_views_of_brief(output_.files(), "what these shards make");
      if (!output_.out.empty()) {
        throw core::UsageError("--out: these are brief reports; write the merged one with --brief-json FILE");
      }
    }
    ContractGate contract;
    contract.open(contract_, report.at("plan").at("name").get<std::string>());
    contract.follow_shards(contracts);
    if (!report.at("machine").at("device").is_null()) {
      contract.require_setting(report::setting_of(report));
    }
    contract.check(report);
    report::record_gates(report, policy);
    write(context, files, report);
    return gate(context, report, policy);
  }

  void write(Context& context, const ShardFiles& files, const nlohmann::json& report) const {
    const nlohmann::json& cases = report.at("cases");
    const ProduceRecord record = [&](report::Characters characters, const core::TakeText& take) {
      report::write_report_text(
          report,
          [&](std::size_t i) {
            return files.record_text(cases[i].at("digest").get_ref<const std::string&>(), characters);
          },
          characters, take);
    };
    Attempts attempts;
    std::string saved;
    if (!output_.out.empty()) {
      attempts.attempt([&] {
        const auto produce = [&](const core::TakeText& take) { record(report::Characters::unicode, take); };
        saved = write_report(output_.out, produce).string();
      });
    }
    write_view_files(attempts, output_, report, record);
    show_report(context, output_, report, saved, record);
    attempts.finish();
  }

  std::vector<std::string> reports_;
  std::string contract_;
  OutputOptions output_;
  GateOptions gates_;
};

}  // namespace

std::unique_ptr<Command> make_merge_command() {
  return std::make_unique<MergeCommand>();
}

}  // namespace numcheck::app::commands
