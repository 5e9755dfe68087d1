#include "run/pipeline.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/strings.hpp"
#include "machine/memory.hpp"
#include "report/summary.hpp"
#include "run/evaluate.hpp"
#include "run/greeting.hpp"
#include "run/group.hpp"
#include "run/memory_gate.hpp"

namespace numcheck::run {
namespace {

using Clock = std::chrono::steady_clock;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

bool counts_as_failure(report::Status status) {
  using report::Status;
  return status == Status::fail || status == Status::error || status == Status::crashed || status == Status::timeout ||
         status == Status::xpass;
}

/// A case that is under way: its buffers live until its last comparison.
struct Flight {
  std::size_t index = 0;
  std::shared_ptr<Group> group;
  std::shared_ptr<ComparisonCache> cache;
  PreparedCase prepared;
  report::CaseResult result;
};

class Pipeline {
 public:
  Pipeline(const std::vector<plan::Case>& cases, Catalog catalog, const PipelineOptions& options)
      : cases_(cases),
        catalog_(catalog),
        options_(options),
        budget_(options.memory_bytes != 0 ? options.memory_bytes : machine::default_memory_bytes()),
        memory_(budget_),
        pool_(options.workers),
        today_(today()) {
    result_.cases.resize(cases.size());
  }

  PipelineResult run(const std::vector<std::pair<core::Digest, nlohmann::json>>& done) {
    const auto start = Clock::now();
    const std::vector<std::size_t> selected = take_over(done);
    if (!selected.empty()) {
      // Starting a device takes a second; inputs and references need none.
      greeting_.emplace(pool_, cases_[selected.front()].environment, options_.on_hello);
      const std::jthread watcher([this](const std::stop_token& stop) { watch(stop); });
      for (const GroupPlan& group : group_cases(cases_, selected)) {
        run_group(group);
      }
      pool_.wait_idle();
      if (!greeting_->fails() || !must_stop()) {
        result_.hello = greeting_->hello();
      }
    }
    finish_unstarted(selected);
    result_.times.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(result_);
  }

 private:
  /// Copies finished records of an earlier run; returns the indices that still have to run, in plan order.
  std::vector<std::size_t> take_over(const std::vector<std::pair<core::Digest, nlohmann::json>>& done) {
    std::map<core::Digest, const nlohmann::json*> known;
    for (const auto& [digest, record] : done) {
      known.emplace(digest, &record);
    }
    std::vector<std::size_t> selected;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const auto found = known.find(cases_[i].digest);
      if (found == known.end()) {
        selected.push_back(i);
        continue;
      }
      const auto status = report::parse_status(found->second->at("status").get<std::string>());
      result_.cases[i] = {status.value_or(report::Status::error), *found->second};
      ++finished_;
    }
    return selected;
  }

  /// Passes interrupts and --fail-fast on to the workers while the main thread computes or waits.
  void watch(const std::stop_token& stop) {
    constexpr auto kPoll = std::chrono::milliseconds(50);
    bool cancelled = false;
    while (!stop.stop_requested()) {
      if (!cancelled && must_stop()) {
        pool_.cancel_pending();
        cancelled = true;
      }
      if (options_.interrupted && options_.interrupted() >= 2) {
        pool_.kill_workers();
        return;
      }
      std::this_thread::sleep_for(kPoll);
    }
  }

  void run_group(const GroupPlan& whole) {
    if (must_stop() || greeting_->has_failed()) {
      return;
    }
    GroupPlan group{.key = whole.key, .cases = {}};
    for (const std::size_t index : whole.cases) {
      const std::uint64_t bytes = estimate_case_bytes(cases_[index]);
      if (bytes > budget_) {
        skip(index, fmt::format("needs {} of host memory, --memory allows {}", core::human_bytes(bytes),
                                core::human_bytes(budget_)));
      } else {
        group.cases.push_back(index);
      }
    }
    for (const GroupPlan& part : split_to_fit(cases_, group, budget_)) {
      run_part(part);
    }
  }

  void run_part(const GroupPlan& plan) {
    const std::uint64_t bytes = estimate_bytes(cases_, plan);
    memory_.acquire(bytes, [this] { return options_.interrupted && options_.interrupted() != 0; });
    if (must_stop()) {
      memory_.release(bytes);
      return;
    }
    std::shared_ptr<Group> group;
    std::vector<PreparedCase> prepared;
    try {
      const auto allocate = [this](std::size_t size) { return pool_.allocate(size); };
      group = prepare_group(cases_, plan, catalog_, options_.reference_flops_limit, allocate, prepared);
    } catch (const std::exception& failure) {
      for (const std::size_t index : plan.cases) {
        finish_with(index, report::Status::error, fmt::format("preparing the inputs: {}", failure.what()));
      }
      memory_.release(bytes);
      return;
    }
    // The last owner of the group gives its memory back, after its cases' comparisons.
    const std::shared_ptr<Group> owner(group.get(), [this, group, bytes](Group*) { memory_.release(bytes); });
    auto cache = std::make_shared<ComparisonCache>();
    for (std::size_t i = 0; i < prepared.size(); ++i) {
      submit(plan.cases[i], owner, cache, std::move(prepared[i]));
    }
    compute_references(*group);
    add_times(*group);
  }

  void submit(std::size_t index, std::shared_ptr<Group> group, std::shared_ptr<ComparisonCache> cache,
              PreparedCase prepared) {
    auto flight = std::make_shared<Flight>();
    flight->index = index;
    flight->group = std::move(group);
    flight->cache = std::move(cache);
    flight->prepared = std::move(prepared);
    flight->result.c = &cases_[index];
    Task task;
    task.c = &cases_[index];
    task.ports = flight->prepared.host;
    task.blocks = flight->prepared.blocks;
    task.on_run = [this, flight](const RunReport& run) { on_run(*flight, run); };
    task.on_end = [this, flight](const Outcome& outcome) { on_end(*flight, outcome); };
    pool_.submit(std::move(task));
  }

  void on_run(Flight& flight, const RunReport& run) {
    try {
      const machine::Device& device = greeting_->hello().device;
      const EvaluationContext context{flight.group.get(), &flight.prepared, &device,
                                      resolve_backend(*flight.group->row, flight.result.c->backend, device),
                                      flight.cache.get()};
      flight.result.runs.push_back(evaluate_run(context, run, flight.result.times.comparison_s));
    } catch (const std::exception& failure) {
      report::RunResult broken;
      broken.run = run;
      broken.status = report::Status::error;
      broken.failing = fmt::format("comparing: {}", failure.what());
      flight.result.runs.push_back(std::move(broken));
    }
    flight.result.times.device_s += run.device_s;
  }

  void on_end(Flight& flight, const Outcome& outcome) {
    if (outcome.kind == Outcome::Kind::error && outcome.reason == "interrupted") {
      return;  // never started: finish_unstarted says so
    }
    conclude(flight.result, outcome, today_);
    finish(flight.index, flight.result);
    flight.prepared = {};
    flight.group.reset();
  }

  void finish_with(std::size_t index, report::Status status, std::string reason) {
    report::CaseResult result;
    result.c = &cases_[index];
    result.status = status;
    result.reason = std::move(reason);
    finish(index, result);
  }

  void skip(std::size_t index, std::string reason) { finish_with(index, report::Status::skipped, std::move(reason)); }

  void finish(std::size_t index, const report::CaseResult& result) {
    nlohmann::json record = report::to_json(result);
    record["reproduce"] = options_.reproduce_prefix + " --case " + cases_[index].digest.short_hex();
    const bool has_worker = !greeting_->fails();
    const std::lock_guard lock(mutex_);
    result_.cases[index] = {result.status, std::move(record)};
    result_.times.comparison_s += result.times.comparison_s;
    result_.times.device_s += result.times.device_s;
    ++finished_;
    failed_ += counts_as_failure(result.status) ? 1 : 0;
    if (options_.on_finished && has_worker) {
      options_.on_finished(cases_[index], result_.cases[index]);
    }
    if (options_.on_progress) {
      options_.on_progress({finished_, cases_.size(), failed_, cases_[index].id});
    }
  }

  void add_times(const Group& group) {
    const std::lock_guard lock(mutex_);
    result_.times.inputs_s += group.inputs_s;
    result_.times.yardsticks_s += group.yardsticks_s;
    for (const auto& [key, rounding] : group.roundings) {
      result_.times.reference_s += rounding->reference_s;
    }
  }

  bool must_stop() {
    const int interrupt = options_.interrupted ? options_.interrupted() : 0;
    const std::lock_guard lock(mutex_);
    const bool enough = options_.stop_after_failures != 0 && failed_ >= options_.stop_after_failures;
    if (interrupt == 0 && !enough) {
      return false;
    }
    result_.interrupted = result_.interrupted || interrupt != 0;
    return true;
  }

  /// Cases that an interrupt or --fail-fast left out.
  void finish_unstarted(const std::vector<std::size_t>& selected) {
    for (const std::size_t index : selected) {
      if (result_.cases[index].record.is_null()) {
        skip(index, result_.interrupted ? "not started: the run was interrupted"
                                        : "not started: the run stopped after the failures that --fail-fast allows");
      }
    }
  }

  const std::vector<plan::Case>& cases_;
  Catalog catalog_;
  const PipelineOptions& options_;
  const std::uint64_t budget_;
  MemoryGate memory_;
  std::mutex mutex_;
  std::size_t finished_ = 0;
  std::size_t failed_ = 0;
  PipelineResult result_;
  WorkerPool pool_;  // after what its callbacks use
  std::optional<Greeting> greeting_;
  std::string today_;
};

}  // namespace

PipelineResult run_cases(const std::vector<plan::Case>& cases, Catalog catalog, const PipelineOptions& options,
                         const std::vector<std::pair<core::Digest, nlohmann::json>>& done) {
  Pipeline pipeline(cases, catalog, options);
  return pipeline.run(done);
}

}  // namespace numcheck::run
