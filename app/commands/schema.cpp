// te-numcheck schema: JSON Schemas for editors and CI, generated from the same descriptors as the decoder.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "catalog.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "doctor_json.hpp"
#include "report/comparison.hpp"
#include "report/contract.hpp"
#include "report/report.hpp"

namespace numcheck::app::commands {
namespace {

const CommandInfo kInfo{
    .name = "schema",
    .summary = "print the JSON Schema (draft-07) of plans, reports, comparisons, contracts or doctor --json",
    .usage = "[plan|report|comparison|contract|doctor]",
    .examples = {"schema plan", "schema report > report-1.schema.json"},
    .exit_codes = {0, 2},
    .words = {"plan", "report", "comparison", "contract", "doctor"},
};

class SchemaCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override {
    cli.add_option("which", which_, "plan, report, comparison, contract or doctor")->type_name("WHICH");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    require_known(which_, "schema", kInfo.words);
    const nlohmann::json schema = which_ == "plan"         ? plan::plan_schema(vocabulary())
                                  : which_ == "report"     ? report::report_schema()
                                  : which_ == "comparison" ? report::comparison_schema()
                                  : which_ == "contract"   ? report::contract_schema()
                                                           : doctor_schema();
    context.terminal.data(schema.dump(2) + "\n");
    return core::ExitCode::success;
  }

 private:
  std::string which_ = "plan";
};

}  // namespace

std::unique_ptr<Command> make_schema_command() {
  return std::make_unique<SchemaCommand>();
}

}  // namespace numcheck::app::commands
