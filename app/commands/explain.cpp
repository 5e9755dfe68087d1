// te-numcheck explain: an op, one case of a plan, or a page about the program.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "case_of_identifier.hpp"
#include "catalog.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "core/parallel.hpp"
#include "core/printable.hpp"
#include "core/strings.hpp"
#include "execution_options.hpp"
#include "explain_attention.hpp"
#include "explain_op.hpp"
#include "explain_pages.hpp"
#include "model/arithmetic.hpp"
#include "model/expected_class.hpp"
#include "plan/backend_name.hpp"
#include "plans.hpp"
#include "prepare/group.hpp"
#include "prepare/grouping.hpp"
#include "report/override_sentences.hpp"
#include "report/views/text_table.hpp"
#include "reproduce.hpp"
#include "run/pipeline.hpp"
#include "run/reference_time.hpp"
#include "screen_text.hpp"
#include "selection.hpp"
#include "te_libraries.hpp"

namespace numcheck::app::commands {
namespace {

/// Pages, then ops.
std::vector<std::string_view> topics() {
  std::vector<std::string_view> names;
  for (const PageInfo& page : pages()) {
    names.push_back(page.name);
  }
  for (const prepare::CatalogRow& row : catalog()) {
    names.push_back(row.op->name);
  }
  return names;
}

const CommandInfo& command_info() {
  static const CommandInfo info{
      .name = "explain",
      .summary = "show what an op computes and how it is judged, everything about one case of a plan, or a page",
      .usage = "[OPTIONS] OP|PAGE|ID, or: ID|DIGEST PLAN..., or: --all",
      .examples =
          {"explain plan", "explain gemm", "explain 5f3a91c2 configs/plans/quick.json",
           "explain attention_fwd/sq=256,sk=256,d=64/fp32/transformer_engine --device sim:sm_80 --cudnn 9.14.0"},
      .exit_codes = {0, 2, 3},
      .words = topics(),
      .takes_files = true,
  };
  return info;
}

/// What can be explained, a line each.
std::string all_topics(bool colour) {
  std::vector<std::vector<report::views::Cell>> rows;
  for (const PageInfo& page : pages()) {
    rows.push_back({{std::string(page.name)}, {std::string(page.summary)}});
  }
  for (const prepare::CatalogRow& row : catalog()) {
    rows.push_back({{std::string(row.op->name)}, {std::string(row.op->summary)}});
  }
  return report::views::render_table({{"topic"}, {"about"}}, rows, 0, colour);
}

std::string ports_text(const plan::Case& c, bool colour) {
  std::vector<std::vector<report::views::Cell>> rows;
  for (const op::Port& port : c.op->ports(c.params, *c.mode)) {
    rows.push_back({{std::string(port.name)},
                    {std::string(core::dtype_info(port.dtype).name)},
                    {port.batch == 1 ? fmt::format("{} x {}", port.rows, port.cols)
                                     : fmt::format("{} x {} x {}", port.batch, port.rows, port.cols)},
                    {std::to_string(port.ld)},
                    {std::to_string(port.offset_bytes)},
                    {core::human_bytes(port.extent_bytes())},
                    {std::string(port.doc)}});
  }
  return report::views::render_table(
      {{"port"}, {"format"}, {"shape"}, {"row stride", true}, {"offset", true}, {"bytes", true}, {"meaning"}}, rows, 0,
      colour);
}

/// The integers of the exact leg, or why there is none.
std::string exact_text(const plan::Case& c) {
  if (prepare::find_row(catalog(), c.op->name)->reference.defines_bits) {
    return "none: whatever the inputs are, the op defines every bit";
  }
  const op::ExactPlan plan = c.op->exact_plan(c.params, *c.mode);
  if (!plan.reason.empty()) {
    return "none: " + plan.reason;
  }
  if (c.op->exact_inputs != nullptr) {
    return "small integers, drawn at random and arranged by the op so that every result is exact";
  }
  if (plan.positive) {
    return "positive integers 4 to 15: exact only if partial sums are promoted";
  }
  return fmt::format("+-1..{} times +-1..{}, one non-zero in {}", plan.max_first, plan.max_second, plan.stride);
}

std::string model_text(const prepare::CatalogRow& row, const plan::Case& c, int sm) {
  const std::string_view backend = c.backend == "auto" ? row.backends.front().name : plan::backend_of(c.backend);
  model::ModelRequest request{
      .params = &c.params, .mode = c.mode, .sm = sm, .arithmetic = prepare::arithmetic_of(row, backend)};
  request.exact_leg = c.inputs.exact_leg();
  const auto variable = c.environment.find("NVIDIA_TF32_OVERRIDE");
  request.expected = model::expected_class(
      *c.mode, variable == c.environment.end() ? std::string() : variable->second.value_or(std::string()));
  std::string text = fmt::format("  expected class: {}\n", report::class_label(model::class_name(request.expected)));
  for (const op::Port& port : c.op->ports(c.params, *c.mode)) {
    if (port.role == op::Role::output) {
      if (row.reference.defines_bits) {
        text += fmt::format(
            "  {}: the op defines this output bit for bit; codes that are drawn at random are judged by how often they "
            "are\n",
            port.name);
        continue;
      }
      const model::ErrorModel model = row.error_model(request, port.name);
      text += fmt::format("  {}: {}\n", port.name, model.source);
      text += model.exact ? "     equal to the rounded reference, bit for bit\n"
              : model.element_errors
                  ? fmt::format(
                        "     bound and variance of each element from what the reference "
                        "knows of its row, kappa {}\n",
                        core::shortest(model.kappa))
                  : fmt::format("     bound {} A + {} |y| + {}, kappa {}\n", core::shortest(model.bound_magnitude),
                                core::shortest(model.bound_value), core::shortest(model.bound_absolute),
                                core::shortest(model.kappa));
    }
  }
  return text;
}

/// What of the outputs the reference covers, in a run with the default of --reference-flops.
std::string coverage_text(const prepare::CatalogRow& row, const plan::Case& c) {
  const double limit = run::PipelineOptions().reference_flops_limit;
  if (!row.reference.tracked() && c.op->flops(c.params) > limit) {
    return fmt::format("a sample of the outputs, since these are more than {:.4g} operations (run --reference-flops)",
                       limit);
  }
  const int threads = core::thread_count();
  const double least = run::least_reference_s(c, row, threads);
  const std::string limit_text = "every output, within the time limit of the case (run --timeout)";
  return least < 1
             ? limit_text
             : fmt::format("{}; at least {:.3g} s on {} thread{}", limit_text, least, threads, threads == 1 ? "" : "s");
}

std::string explain_case(const plan::Case& c, int sm, bool colour) {
  const prepare::CatalogRow& row = *prepare::find_row(catalog(), c.op->name);
  return fmt::format(
      "{}\ndigest {}\n\n{}: {}\n  {}\nmode {}: {}\nexact leg: {}\n{:.4g} floating-point operations, {} of host "
      "memory\nreference: {}\n\n"
      "{}\nlimits on sm_{}, before output rounding (A: sum of |terms|, y: value):\n{}\nas exec reads it:\n{}",
      core::printable(c.id), c.digest.hex(), c.op->name, c.op->summary, c.op->formula, c.mode->name,
      mode_doc(*c.mode, *c.op), exact_text(c), c.op->flops(c.params),
      core::human_bytes(prepare::estimate_case_bytes(c, prepare::may_stream(c, row))), coverage_text(row, c),
      ports_text(c, colour), sm, model_text(row, c, sm), stdout_json(plan::case_to_json(c), -1));
}

class ExplainCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return command_info(); }

  void add_options(CLI::App& cli) override {
    cli.add_option("what", what_, "page, op, identifier or digest")->type_name("WHAT");
    cli.add_flag("--all", all_, "list everything that can be explained")->group("Selection");
    add_plan_options(cli, plans_);
    add_device_options(cli, options_);
    cli.add_option("--cudnn", cudnn_, "attention: read the gates for this version of cuDNN [the installed one]")
        ->type_name("VERSION")
        ->group("Device");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    const bool colour = context.terminal.colour_on_stdout();
    if (all_ && what_.empty()) {
      context.terminal.out(all_topics(colour));
      return core::ExitCode::success;
    }
    if (what_.empty() || all_) {
      throw core::UsageError(all_ ? "explain --all takes no topic"
                                  : "explain: name a page, an op, or a case and its plan; --all lists pages and ops");
    }
    require_te_libs(options_.te_libs);
    if (const PageInfo* page = find_page(what_); page != nullptr && plans_.paths.empty()) {
      context.terminal.out(explain_page(*page, context.terminal.width(), colour));
      return core::ExitCode::success;
    }
    if (const prepare::CatalogRow* row = prepare::find_row(catalog(), what_); row != nullptr && plans_.paths.empty()) {
      context.terminal.out(explain_op(*row, colour));
      return core::ExitCode::success;
    }
    if (plans_.paths.empty()) {
      if (names_plan(what_)) {
        throw core::UsageError(
            fmt::format("explain: name a case before its plan: te-numcheck explain ID|DIGEST {}", shell_word(what_)));
      }
      if (what_.find('/') == std::string::npos) {
        require_known(what_, "topic", topics());
      }
    }
    const plan::Case c = plans_.paths.empty() ? case_of_identifier(what_) : case_of_plans(context);
    std::optional<AttentionSite> site;
    if (is_attention(*c.op) || options_.device != "auto") {
      site = attention_site(options_, cudnn_);
    }
    // A device that nobody named is not started to explain other ops.
    constexpr int kUsual = 90;
    // Where a device has no such arithmetic, who refuses the case is all the more of interest.
    const std::string obstacle = is_attention(*c.op) ? model::gemm_obstacle(site->sm, *c.mode) : std::string();
    std::string text = obstacle.empty() ? explain_case(c, site ? site->sm : kUsual, colour)
                                        : fmt::format("{}\n\n{}\n", core::printable(c.id), obstacle);
    if (is_attention(*c.op)) {
      text += "\n" + explain_attention(c, *prepare::find_row(catalog(), c.op->name), *site, colour);
    }
    context.terminal.out(text);
    return core::ExitCode::success;
  }

 private:
  [[nodiscard]] plan::Case case_of_plans(Context& context) const {
    plan::Plan plan = load_plans(context, plans_, "explain");
    SelectionOptions only;
    only.cases = {what_};
    only.named_by = "explain";
    std::vector<plan::Case> cases = for_identifier(std::move(plan.cases), what_, options_.te_libs);
    return select(std::move(cases), only).cases.front();
  }

  std::string what_;
  bool all_ = false;
  PlanOptions plans_;
  ExecutionOptions options_;
  std::string cudnn_;
};

}  // namespace

std::unique_ptr<Command> make_explain_command() {
  return std::make_unique<ExplainCommand>();
}

}  // namespace numcheck::app::commands
