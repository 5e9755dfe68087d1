// te-numcheck exec: reads cases and writes results as JSON lines. With --worker, the coordinator's child process.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "case_of_record.hpp"
#include "catalog.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "core/json_depth.hpp"
#include "execution_options.hpp"
#include "plan/case.hpp"
#include "plans.hpp"
#include "report/summary.hpp"
#include "run/pipeline.hpp"
#include "screen_text.hpp"
#include "te_libraries.hpp"
#include "worker/workers.hpp"

namespace numcheck::app::commands {
namespace {

using nlohmann::json;

const CommandInfo kInfo{
    .name = "exec",
    .summary = "run cases given as JSON lines on stdin; results are JSON lines on stdout",
    .usage = "[OPTIONS] < CASES.jsonl",
    .examples = {"exec --device sim:sm_90 < case.jsonl", "exec --in-process < case.jsonl"},
    .exit_codes = {0, 1, 2, 3, 4},
};

class ExecCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override {
    add_device_options(cli, options_);
    add_execution_options(cli, options_);
    cli.add_flag("--worker", worker_, "")->group("");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    run::PipelineOptions pipeline = pipeline_options(options_);
    if (worker_) {
      return static_cast<core::ExitCode>(
          worker::worker_main(worker::kWorkerSocketFd, pipeline.workers.device, pipeline.workers.factory, &find_op));
    }
    pipeline.reproduce_prefix = "te-numcheck run PLAN";
    return run_lines(context, pipeline);
  }

 private:
  /// A case with this status ended its worker. A pool replaces a limited number of them, so the next line gets a new one.
  static bool ended_worker(verdict::Status status) {
    return status == verdict::Status::crashed || status == verdict::Status::timeout;
  }

  /// The next line of stdin; false at its end.
  static bool read_line(std::string& line, std::size_t number) {
    constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
    line.clear();
    for (int letter = std::cin.get(); letter != std::char_traits<char>::eof(); letter = std::cin.get()) {
      if (letter == '\n') {
        return true;
      }
      if (line.size() == kMaxBytes) {
        throw core::UsageError(fmt::format("stdin:{}: this line is longer than 16 MiB, the limit for a case", number));
      }
      line += static_cast<char>(letter);
    }
    if (std::ferror(stdin) != 0) {
      throw core::IoError(fmt::format("cannot read standard input: {}", std::strerror(errno)));
    }
    return !line.empty();
  }

  /// Every line is answered before the next one is read, so that another program can interact. Workers live across
  /// lines: starting one takes longer than most cases.
  [[nodiscard]] core::ExitCode run_lines(Context& context, const run::PipelineOptions& pipeline) const {
    std::vector<json> records;
    bool malformed = false;
    std::string line;
    std::optional<worker::WorkerPool> pool;
    for (std::size_t number = 1; read_line(line, number); ++number) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) {
        continue;
      }
      const std::optional<plan::Case> c = parse_line(context, line, number);
      if (!c.has_value()) {
        malformed = true;
        continue;
      }
      if (!pool.has_value()) {
        pool.emplace(pipeline.workers);
      }
      run::PipelineResult result = run::run_cases({*c}, catalog(), pipeline, *pool);
      if (ended_worker(result.cases.front().status)) {
        pool.reset();
      }
      json record = std::move(result.cases.front().record);
      record.erase("reproduce");
      context.terminal.data(stdout_json(record, -1));
      records.push_back({{"status", record.at("status")}});
    }
    if (malformed) {
      return core::ExitCode::usage;
    }
    if (records.empty()) {
      context.terminal.err("nothing to run: standard input has no case; exec reads one per line, as JSON\n");
    }
    return report::exit_code_of(report::summarise(records), {});
  }

  /// The case in a line. Also accepts a record of a report, and drops its measurements.
  [[nodiscard]] std::optional<plan::Case> parse_line(Context& context, const std::string& line,
                                                     std::size_t number) const {
    const std::string place = fmt::format("stdin:{}: ", number);
    json object = core::nests_deeper(line) ? json(json::value_t::discarded) : json::parse(line, nullptr, false);
    if (object.is_discarded()) {
      context.terminal.error(place + "this line is not JSON");
      return std::nullopt;
    }
    try {
      plan::Case c = case_of_record(std::move(object));
      std::vector<std::string_view> legal;
      for (const BackendInfo& backend : backends()) {
        legal.push_back(backend.name);
      }
      const std::vector<std::string> versions = te_backend_names(options_.te_libs);
      legal.insert(legal.end(), versions.begin(), versions.end());
      require_known(c.backend, "backend", legal);
      return c;
    } catch (const plan::PlanError& error) {
      context.terminal.error(place + "this is not a case");
      print_diagnostics(context.terminal, error.diagnostics());
    } catch (const core::UsageError& error) {
      context.terminal.error(place + error.what(), error.notes());
    }
    return std::nullopt;
  }

  ExecutionOptions options_;
  bool worker_ = false;
};

}  // namespace

std::unique_ptr<Command> make_exec_command() {
  return std::make_unique<ExecCommand>();
}

}  // namespace numcheck::app::commands
