// te-numcheck list: what is available, without running anything.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "catalog.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "core/counted.hpp"
#include "core/printable.hpp"
#include "execution_options.hpp"
#include "given_tensors.hpp"
#include "list_topics.hpp"
#include "page_text.hpp"
#include "plans.hpp"
#include "report/report.hpp"
#include "report/views/text_table.hpp"
#include "screen_text.hpp"
#include "selection.hpp"
#include "shipped_files.hpp"
#include "te_libraries.hpp"

namespace numcheck::app::commands {
namespace {

using nlohmann::json;
using report::views::Column;

const CommandInfo kInfo{
    .name = "list",
    .summary = "show what is available, without running anything",
    .usage =
        "[OPTIONS] ops|devices|plans|distributions|causes|variables, modes|backends|faults [OP], or: cases PLAN...",
    .examples = {"list plans", "list cases quick --mode bf16", "list faults gemm", "list modes --json"},
    .exit_codes = {0, 2, 4},
    .words = {"ops", "modes", "backends", "devices", "plans", "cases", "distributions", "faults", "causes",
              "variables"},
    .takes_files = true,
};

json cases_list(const std::vector<plan::Case>& cases) {
  json list = json::array();
  std::vector<std::string> digests;
  digests.reserve(cases.size());
  for (const plan::Case& c : cases) {
    digests.push_back(c.digest.hex());
  }
  const std::vector<std::string> prefixes = report::short_digests(digests);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    list.push_back({{"digest", prefixes[i]}, {"id", cases[i].id}});
  }
  return list;
}

std::string cell_text(const json& value) {
  if (!value.is_array()) {
    return value.get<std::string>();
  }
  return value.size() == catalog().size() ? "all"
                                          : fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), " "));
}

/// Columns in the given order; the last one is the widest.
std::string table_text(const json& list, const std::vector<std::string>& keys, bool colour) {
  std::vector<Column> columns;
  columns.reserve(keys.size());
  for (const std::string& key : keys) {
    columns.push_back({key});
  }
  std::vector<std::vector<report::views::Cell>> rows;
  for (const json& item : list) {
    std::vector<report::views::Cell> row;
    row.reserve(keys.size());
    for (const std::string& key : keys) {
      row.push_back({cell_text(item.at(key))});
    }
    rows.push_back(std::move(row));
  }
  return report::views::render_table(columns, rows, 0, colour);
}

/// Names, numbers of cases, and descriptions filled to the width.
std::string plans_text(const json& list, std::size_t width) {
  std::size_t longest = 0;
  for (const json& plan : list) {
    longest = std::max(longest, plan.at("name").get_ref<const std::string&>().size());
  }
  std::vector<Term> terms;
  for (const json& plan : list) {
    terms.push_back({core::printable(fmt::format("{:<{}}  {:>6}", plan.at("name").get_ref<const std::string&>(),
                                                 longest, plan.at("cases").get<std::size_t>())),
                     core::printable(plan.at("description").get_ref<const std::string&>())});
  }
  return render_terms(terms, width);
}

class ListCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override {
    cli.add_option("what", what_, "what to list")->type_name("WHAT");
    add_plan_options(cli, plans_);
    add_selection_options(cli, selection_);
    add_te_lib_option(cli, te_libs_);
    cli.add_flag("--json", json_, "as JSON")->group("Output");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    if (what_.empty()) {
      throw core::UsageError(fmt::format("list: name one of {}", fmt::join(kInfo.words, ", ")));
    }
    require_known(what_, "list topic", kInfo.words);
    if (what_ == "cases") {
      return list_cases(context);
    }
    const std::size_t expected = lists_by_op(what_) ? 1 : 0;
    if (plans_.paths.size() > expected) {
      throw core::UsageError(fmt::format("list {}: unexpected argument \"{}\"", what_, plans_.paths[expected]));
    }
    if (what_ == "plans") {
      return list_plans(context);
    }
    if (!plans_.paths.empty()) {
      require_known(plans_.paths.front(), "op", op_names());
    }
    const ListTopic topic = plans_.paths.empty() ? list_topic(what_) : list_topic_of_op(what_, plans_.paths.front());
    print(context, topic.entries, topic.columns);
    return core::ExitCode::success;
  }

 private:
  /// A plan with mistakes is reported, and costs no other its place in the list.
  core::ExitCode list_plans(Context& context) {
    json list = json::array();
    core::ExitCode code = core::ExitCode::success;
    for (const auto& [name, path] : shipped_plans()) {
      try {
        const plan::Plan plan = plan::load_plan(path.string(), vocabulary(), {});
        list.push_back(
            {{"name", name}, {"cases", plan.cases.size()}, {"description", plan.description}, {"path", path.string()}});
      } catch (const plan::PlanError& error) {
        print_diagnostics(context.terminal, error.diagnostics());
        code = error.exit_code();
      }
    }
    if (json_) {
      context.terminal.data(stdout_json(list, 1));
    } else {
      context.terminal.out(plans_text(list, context.terminal.width()));
    }
    return code;
  }

  core::ExitCode list_cases(Context& context) {
    plan::Plan plan = load_plans(context, plans_, "list cases");
    plan.cases = for_every_te_lib(std::move(plan.cases), te_libs_);
    const std::size_t expanded = plan.cases.size();
    const bool surveyed = std::ranges::any_of(plan.cases, &plan::Case::only_if_new);
    const std::string hint = auto_backend_hint(plan.cases, selection_);
    const Selection selection = select(std::move(plan.cases), selection_);
    print(context, cases_list(selection.cases), {"digest", "id"});
    if (!json_) {
      context.terminal.err(selection.cases.size() == expanded
                               ? core::counted(static_cast<double>(expanded), "case") + "\n"
                               : fmt::format("{} of {}\n", selection.cases.size(),
                                             core::counted(static_cast<double>(expanded), "case")));
      if (selection.cases.empty() && !hint.empty()) {
        context.terminal.err("note: " + hint + "\n");
      }
      if (surveyed) {
        context.terminal.err(
            "note: a run first asks the device and leaves out cases that would show no new kernel; "
            "shards divide what is left\n");
      }
    }
    return selection.cases.empty() ? core::ExitCode::nothing_verified : core::ExitCode::success;
  }

  void print(Context& context, const json& list, const std::vector<std::string>& keys) const {
    if (json_) {
      context.terminal.data(stdout_json(list, 1));
    } else {
      context.terminal.out(table_text(list, keys, context.terminal.colour_on_stdout()));
    }
  }

  std::string what_;
  PlanOptions plans_;
  SelectionOptions selection_;
  std::vector<std::string> te_libs_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_list_command() {
  return std::make_unique<ListCommand>();
}

}  // namespace numcheck::app::commands
