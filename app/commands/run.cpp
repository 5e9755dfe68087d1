// te-numcheck run: expand, execute, report.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "annotations.hpp"
#include "arguments.hpp"
#include "baseline.hpp"
#include "catalog.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "contract_option.hpp"
#include "core/counted.hpp"
#include "core/file.hpp"
#include "core/printable.hpp"
#include "core/trace.hpp"
#include "execution_options.hpp"
#include "facts.hpp"
#include "failure_lines.hpp"
#include "gate_options.hpp"
#include "interrupt_lines.hpp"
#include "output_checks.hpp"
#include "plans.hpp"
#include "report/gate_findings.hpp"
#include "reproduce.hpp"
#include "result_stream.hpp"
#include "run/configuration_survey.hpp"
#include "run/interrupt.hpp"
#include "run_diagnosis.hpp"
#include "run_options.hpp"
#include "run_results.hpp"
#include "selection.hpp"
#include "shard.hpp"
#include "te_libraries.hpp"
#include "tensor_folder.hpp"
#include "trace_file.hpp"

namespace numcheck::app::commands {
namespace {

const CommandInfo kInfo{
    .name = "run",
    .summary = "expand plans, run their cases, compare with the reference, report",
    .usage = "[OPTIONS] PLAN...",
    .examples = {"run configs/plans/quick.json", "run configs/plans/quick.json --device sim:sm_90 --mode bf16,fp16"},
    .exit_codes = {0, 1, 2, 3, 4, 130},
    .takes_files = true,
};

constexpr double kMaxBudget_s = 8760.0 * 3600;  ///< a year

class Run {
 public:
  Run(Context& context, const RunOptions& options)
      : context_(context),
        options_(options),
        gates_(options.gates.policy()),
        folder_(options.output),
        stream_(options.output.jsonl),
        trace_(options.output.trace, context.terminal),
        facts_(own_facts(context.argv)),
        failures_(context) {
    if (options.output.include_host) {
      facts_.host.name = host_name();
    }
  }

  core::ExitCode run() {
    (void)slowest_count(options_.output.slowest);
    pipeline_ = pipeline_options(options_.execution);
    if (!options_.fail_fast.empty()) {
      pipeline_.stop_after_failures =
          static_cast<std::size_t>(parse_count(options_.fail_fast, "--fail-fast", 1, UINT32_MAX));
    }
    if (!options_.budget.empty()) {
      pipeline_.budget_s = parse_time_s(options_.budget, "--budget", kMaxBudget_s);
    }
    pipeline_.all_maps = options_.output.maps;
    command_ = reproducer(options_.plans, options_.execution);
    pipeline_.reproduce_prefix = command_.recorded;
    choose_cases();
    keep_tensors();
    diagnosis_.connect(parse_diagnose(options_.diagnose, context_.terminal.facts().stdout_is_tty), pipeline_);
    const run::Interrupt interrupt([this](int count) { say_interrupted(context_, count); });
    connect(interrupt);
    trace_.connect(facts_, pipeline_);
    const core::TraceSection section(pipeline_.workers.trace, "coordinator");
    survey();
    const auto done = take_over();
    start_ = std::chrono::steady_clock::now();
    run::PipelineResult result = run::run_cases(selection_.cases, catalog(), pipeline_, done);
    context_.terminal.clear_status();
    return conclude(std::move(result), interrupt);
  }

 private:
  void choose_cases() {
    plan::Plan plan = load_plans(context_, options_.plans, "run");
    require_sources_untouched(options_.output, plan.files, "which the plan is read from");
    plan.cases = for_every_te_lib(std::move(plan.cases), options_.execution.te_libs);
    contract_.open(options_.contract, plan.name);
    baseline_ = Baseline::load(options_.baseline, plan);
    if (baseline_) {
      require_sources_untouched(options_.output, {baseline_->path()}, "which the run is compared with");
      if (baseline_->others() != 0) {
        context_.terminal.err(fmt::format("note: {} of the baseline {} not in the plan, so nothing is said of them\n",
                                          core::counted(static_cast<double>(baseline_->others()), "case"),
                                          baseline_->others() == 1 ? "is" : "are"));
      }
    }
    require_sources_untouched(options_.output, {options_.contract}, "which is read");
    facts_.plan = {.name = plan.name, .digest = plan.digest, .seed = plan.seed, .expanded = plan.cases.size()};
    plant_in_cases(plan.cases);
    if (folder_.resumes()) {
      std::ranges::transform(plan.cases, std::back_inserter(whole_plan_),
                             [](const plan::Case& c) { return CaseName{c.digest, c.id}; });
    }
    // A survey asks about the whole plan, so that shards divide what it keeps.
    SelectionOptions before_survey = options_.selection;
    surveys_ = std::ranges::any_of(plan.cases, &plan::Case::only_if_new);
    if (surveys_) {
      before_survey.shard.clear();
    }
    const std::string hint = auto_backend_hint(plan.cases, options_.selection);
    selection_ = contract_.select(std::move(plan.cases), before_survey);
    say(selection_.notes);
    facts_.plan.selected = selection_.cases.size();
    facts_.plan.shard = selection_.shard;
    facts_.settings = {.repeat = pipeline_.workers.execute.repeats,
                       .inject = pipeline_.workers.execute.inject,
                       .inject_cases = options_.execution.inject_cases,
                       .reference_flops = pipeline_.reference_flops_limit};
    acknowledge_shard(options_.selection.shard);
    if (selection_.cases.empty()) {
      context_.terminal.err(nothing_to_run(selection_, facts_.plan.expanded, hint) + "\n");
    }
  }

  /// Leaves out the cases that would show no new kernel, and those of other shards.
  void survey() {
    if (!surveys_) {
      return;
    }
    const core::Span span("survey");
    run::ConfigurationSurvey survey =
        run::survey_configurations(std::move(selection_.cases), pipeline_.workers, pipeline_.interrupted);
    configurations_ = std::move(survey.configurations);
    SelectionOptions shard_only;
    shard_only.shard = options_.selection.shard;
    selection_ = contract_.select(std::move(survey.cases), shard_only);
    facts_.plan.shard = selection_.shard;
    facts_.configurations = {
        .asked = survey.counts.asked, .kept = survey.counts.kept, .offered = survey.counts.offered.size()};
    facts_.plan.selected = selection_.cases.size();
    if (!context_.common.quiet) {
      const bool interrupted = pipeline_.interrupted() != 0;
      context_.terminal.err(fmt::format("{}{} of {} cases show all {} kernel configurations that were offered\n",
                                        interrupted ? "interrupted while asking which kernels would run; so far, " : "",
                                        survey.counts.kept, survey.counts.asked, survey.counts.offered.size()));
    }
  }

  void plant_in_cases(const std::vector<plan::Case>& cases) {
    if (!options_.execution.inject_cases.empty() && options_.execution.inject.empty()) {
      throw core::UsageError("--inject-case needs a fault to plant; name one with --inject");
    }
    for (const std::string& name : options_.execution.inject_cases) {
      pipeline_.workers.inject_only.insert(named_case(cases, name, "--inject-case"));
    }
  }

  void keep_tensors() {
    if (!options_.output.keep_tensors.empty()) {
      tensors_.emplace(options_.output);
      pipeline_.on_tensors = [this](const run::RunTensors& tensors) { tensors_->keep(tensors); };
    }
  }

  void connect(const run::Interrupt& interrupt) {
    pipeline_.interrupted = [&interrupt] { return interrupt.count(); };
    pipeline_.on_waiting = [this](const std::vector<std::string>& work) { say_waiting(context_, work); };
    pipeline_.on_hello = [this](const worker::WorkerHello& hello) {
      if (hello.device.simulated && pipeline_.workers.device.kind == machine::DeviceChoice::Kind::automatic) {
        context_.terminal.err(
            fmt::format("no NVIDIA driver found: running on {}, which is no evidence about hardware\n",
                        core::printable(hello.device.name)));
      }
      contract_.require_setting({hello.device.sm, hello.device.simulated, hello.libraries});
      folder_.start(journal_header(facts_, hello));
      set_machine(hello);
      stream_.begin(facts_);
    };
    pipeline_.on_finished = [this](const plan::Case& c, const run::FinishedCase& finished) {
      folder_.keep(c.digest, c.id, finished.record);
      stream_.add(finished.record);
      failures_.add(finished, start_);
    };
    pipeline_.workers.on_replaced = [this](const std::string& why) {
      const std::lock_guard lock(notes_mutex_);
      facts_.notes.push_back("a worker was replaced between two cases: " + why);
    };
    pipeline_.on_progress = [this](const run::Progress& progress) {
      if (!context_.common.quiet) {
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
        context_.terminal.status(progress_line(progress, elapsed.count(), context_.terminal.status_width()));
      }
    };
  }

  void say(const std::vector<std::string>& notes) const {
    for (const std::string& note : notes) {
      context_.terminal.err("note: " + core::printable(note) + "\n");
    }
  }

  /// Records of the run that is resumed. A worker is asked first, to know what would run now.
  std::vector<std::pair<core::Digest, nlohmann::json>> take_over() {
    if (!folder_.resumes() || selection_.cases.empty()) {
      return {};
    }
    worker::WorkerPool probe(pipeline_.workers);
    hello_ = probe.hello(worker::worker_key(selection_.cases.front()));
    contract_.require_setting({hello_->device.sm, hello_->device.simulated, hello_->libraries});
    earlier_ = folder_.resume(journal_header(facts_, *hello_), whole_plan_);
    say(earlier_.notes);
    return earlier_.finished;
  }

  void set_machine(const worker::WorkerHello& hello) {
    diagnosis_.set_device(hello.device);
    facts_.device = hello.device;
    facts_.libraries = hello.libraries;
  }

  core::ExitCode conclude(run::PipelineResult result, const run::Interrupt& interrupt) {
    if (!result.hello.device.name.empty()) {
      hello_ = result.hello;
    }
    if (hello_.has_value()) {
      set_machine(*hello_);
    }
    facts_.times = result.times;
    facts_.interrupted = result.interrupted;
    if (pipeline_.budget_s > 0) {
      facts_.budget = {.limit_s = pipeline_.budget_s, .not_started = result.over_budget};
    }
    say(facts_.notes);
    if (facts_.configurations.has_value()) {
      const std::set<std::string> verified =
          run::verified_configurations(configurations_, selection_.cases, result.cases);
      facts_.configurations->verified = verified.size();
      for (const std::string& configuration : verified) {
        facts_.plan.shard.verified.push_back(core::digest_of(configuration).hex());
      }
    }
    std::vector<nlohmann::json> records;
    records.reserve(result.cases.size());
    for (run::FinishedCase& finished : result.cases) {
      records.push_back(std::move(finished.record));
    }
    keep_earlier(records);
    nlohmann::json report = report::make_report(facts_, std::move(records));
    report::record_gates(report, gates_);
    if (!result.interrupted) {
      contract_.check(report);
    }
    if (baseline_ && !result.interrupted) {
      baseline_->compare(report, !options_.budget.empty() || !options_.fail_fast.empty());
    }
    write_files(report);
    context_.terminal.annotate(failure_annotations(report));
    gates_.allow_empty = gates_.allow_empty || is_empty_shard(selection_);
    const core::ExitCode code =
        result.interrupted ? interrupt.exit_code() : gate_baseline(context_, report, gate(context_, report, gates_));
    leave_to_exit(std::move(report));
    return code;
  }

  /// Freeing the millions of numbers of a large report takes 40 us per case, and the end of the process frees them at once.
  static void leave_to_exit(nlohmann::json report) {
    static auto* const kept = new std::vector<nlohmann::json>();  // never destroyed
    kept->push_back(std::move(report));
  }

  void write_files(nlohmann::json& report) {
    {
      const core::Span span("write results");
      write_results(context_, {options_.output, command_, [&] { stream_.finish(facts_, report); }}, folder_, report);
      if (tensors_.has_value()) {
        say(tensors_->finish());
      }
    }
    trace_.finish();
  }

  /// Adds what the run that is resumed has of other cases.
  void keep_earlier(std::vector<nlohmann::json>& records) {
    if (whole_plan_.empty()) {
      return;
    }
    records = with_earlier_records(std::move(records), selection_.cases, whole_plan_, std::move(earlier_));
    const std::size_t kept = records.size() - selection_.cases.size();
    facts_.plan.selected = records.size();
    if (kept != 0) {
      context_.terminal.err(fmt::format("note: the report keeps {} of the earlier run that this selection leaves out\n",
                                        core::counted(static_cast<double>(kept), "case")));
    }
  }

  Context& context_;
  const RunOptions& options_;
  report::GatePolicy gates_;
  RunFolder folder_;
  ResultStream stream_;
  TraceFile trace_;
  std::optional<Baseline> baseline_;
  std::optional<TensorFolder> tensors_;
  RunDiagnosis diagnosis_;
  report::RunFacts facts_;
  run::PipelineOptions pipeline_;
  Reproducer command_;
  Selection selection_;
  ContractGate contract_;
  bool surveys_ = false;                       ///< the plan has cases that run only if they show a new kernel
  run::ConfigurationsOfCases configurations_;  ///< if there was a survey
  std::optional<worker::WorkerHello> hello_;
  std::vector<CaseName> whole_plan_;  ///< if a run is resumed
  EarlierRun earlier_;
  std::chrono::steady_clock::time_point start_;
  FailureLines failures_;
  std::mutex notes_mutex_;  ///< guards facts_.notes while workers run
};

class RunCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override { add_run_options(cli, options_); }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    check_output_options(options_.output);
    return Run(context, options_).run();
  }

 private:
  RunOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace numcheck::app::commands
