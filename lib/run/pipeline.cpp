#include "run/pipeline.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/kept_blocks.hpp"
#include "core/parallel.hpp"
#include "core/strings.hpp"
#include "core/trace.hpp"
#include "machine/memory.hpp"
#include "prepare/group.hpp"
#include "run/budget_order.hpp"
#include "run/case_flights.hpp"
#include "run/group_work.hpp"
#include "run/handshake.hpp"
#include "run/memory_gate.hpp"
#include "run/reference_time.hpp"
#include "run/result_collector.hpp"
#include "run/stop_control.hpp"
#include "run/survey.hpp"
#include "worker/start_thread.hpp"

namespace numcheck::run {
namespace {

using Clock = std::chrono::steady_clock;

/// Groups below both limits take about a millisecond of one core.
constexpr std::uint64_t kSmallBytes = std::uint64_t{4} << 20;
constexpr double kSmallFlops = 2e7;
/// Small groups are prepared side by side, this many at a time: one core prepares some 5000 a second.
constexpr std::size_t kSmallAtOnce = 16;

/// How many groups may be prepared at a time: enough that no worker waits for the next one.
std::size_t groups_ahead(const std::vector<plan::Case>& cases, const PipelineOptions& options) {
  std::set<worker::WorkerKey> keys;
  for (const plan::Case& c : cases) {
    keys.insert(worker::worker_key(c));
  }
  const auto workers = static_cast<std::size_t>(std::max(1, options.workers.workers_per_environment));
  return 4 + 2 * workers * keys.size();
}

class Pipeline {
 public:
  Pipeline(const std::vector<plan::Case>& cases, prepare::Catalog catalog, const PipelineOptions& options,
           worker::WorkerPool& pool, bool is_last)
      : cases_(cases),
        catalog_(catalog),
        options_(options),
        budget_(options.memory_bytes != 0 ? options.memory_bytes : machine::default_memory_bytes()),
        kept_(to_keep(budget_)),
        memory_(budget_ - to_keep(budget_), groups_ahead(cases, options)),
        results_(cases, options),
        pool_(pool),
        is_last_(is_last),
        stop_(options, results_, pool),
        flights_(cases, options, handshake_, results_, stop_, pool),
        work_(cases, catalog, options, flights_, results_, stop_, pool) {}

  /// After an exception, waits for cases in progress, which refer to this object.
  ~Pipeline() {
    if (!ended_) {
      pool_.cancel_pending();
      try {
        flights_.wait_idle();
      } catch (const std::exception&) {  // the first exception is already propagating
      }
    }
  }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  PipelineResult run(const std::vector<std::pair<core::Digest, nlohmann::json>>& done) {
    const core::TraceSection section(options_.workers.trace, "coordinator");
    const auto start = Clock::now();
    const std::vector<std::size_t> selected = results_.restore(done);
    if (!selected.empty()) {
      run_selected(selected);
    }
    finish_rest(selected);
    ended_ = true;
    PipelineResult result = results_.take();
    result.hello = std::move(hello_);
    result.interrupted = stop_.interrupted();
    result.over_budget = over_budget_;
    result.times.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
    return result;
  }

 private:
  void run_selected(const std::vector<std::size_t>& selected) {
    // Starting a device takes a second; inputs and references need none.
    handshake_.emplace(pool_, worker::worker_key(cases_[selected.front()]), options_.on_hello);
    const auto watcher = worker::start_thread<std::jthread>("to watch for interrupts",
                                                            [this](const std::stop_token& stop) { stop_.watch(stop); });
    std::vector<prepare::GroupPlan> groups = prepare::group_cases(cases_, selected);
    if (options_.budget_s > 0) {
      groups = cheapest_first(cases_, std::move(groups));
    }
    survey_.emplace(pool_, cases_, groups);
    for (std::size_t i = 0; i < groups.size() && !stop_.must_stop() && !handshake_->has_failed(); ++i) {
      survey_->ask_up_to(i);
      run_group(groups[i]);
    }
    run_admitted();
    if (is_last_) {
      pool_.expect_no_more();
    }
    {
      const core::Span span("wait for cases");
      flights_.wait_idle();
    }
    if (!handshake_->fails() || !stop_.must_stop()) {
      hello_ = handshake_->hello();
    }
  }

  /// Asking costs next to nothing, but the answer may have to wait for a device to start. Meanwhile, groups that are
  /// cheap to prepare do not wait for it.
  [[nodiscard]] bool needs_no_answer(const prepare::GroupPlan& group) {
    const plan::Case& first = cases_[group.cases.front()];
    const double cost = first.op->flops(first.params) * static_cast<double>(group.cases.size());
    return cost <= options_.no_wait_flops * core::thread_count() && !survey_->is_answered(group);
  }

  void run_group(const prepare::GroupPlan& whole) {
    const bool without_answer = needs_no_answer(whole);
    if (!without_answer && !survey_->is_answered(whole)) {
      run_admitted();  // so that workers have something to do meanwhile
      const core::TraceSection section(options_.workers.trace, "coordinator", subject_of(cases_, whole));
      const core::Span span("wait for answers");
      survey_->wait(whole);
    }
    prepare::GroupPlan group{.key = whole.key, .cases = {}};
    const bool streams = work_.streams(whole);
    for (const std::size_t index : whole.cases) {
      const std::uint64_t bytes = prepare::estimate_case_bytes(cases_[index]);  // all rows, if it does not pass
      const std::optional<worker::Outcome> answer = without_answer ? std::nullopt : survey_->answer(index);
      if (answer && answer->kind != worker::Outcome::Kind::done) {
        flights_.refuse(index, *answer);
      } else if (bytes > budget_) {
        flights_.skip(index, fmt::format("needs {} of host memory, but --memory allows only {}",
                                         core::human_bytes(bytes), core::human_bytes(budget_)));
      } else if (std::optional<std::string> hopeless = hopeless_of(cases_[index])) {
        flights_.skip(index, *std::move(hopeless));
      } else {
        group.cases.push_back(index);
      }
    }
    for (prepare::GroupPlan& part : prepare::split_to_fit(cases_, group, budget_, streams)) {
      run_part(std::move(part));
    }
  }

  [[nodiscard]] std::optional<std::string> hopeless_of(const plan::Case& c) const {
    const prepare::CatalogRow* row = prepare::find_row(catalog_, c.op->name);
    return row == nullptr
               ? std::nullopt
               : hopeless_reference(c, *row, c.timeout_s.value_or(options_.workers.timeout_s), core::thread_count());
  }

  /// Of a group that streams also what the case that needs most has with all its rows.
  [[nodiscard]] MemoryGate::Demand demand_of(const prepare::GroupPlan& plan) const {
    const bool streams = work_.streams(plan);
    MemoryGate::Demand demand{prepare::estimate_bytes(cases_, plan, streams), 0};
    for (const std::size_t index : streams ? plan.cases : std::vector<std::size_t>()) {
      const std::uint64_t all = prepare::estimate_case_bytes(cases_[index]);
      const std::uint64_t some = prepare::estimate_case_bytes(cases_[index], true);
      demand.besides = std::max(demand.besides, all - std::min(all, some));
    }
    return demand;
  }

  void run_part(prepare::GroupPlan plan) {
    const MemoryGate::Demand demand = demand_of(plan);
    const bool small = demand.bytes < kSmallBytes && flops_of(cases_, plan) < kSmallFlops;
    std::optional<MemoryGate::Lease> memory = small ? memory_.try_acquire(demand) : std::nullopt;
    if (!memory) {
      run_admitted();
      const core::TraceSection section(options_.workers.trace, "coordinator", subject_of(cases_, plan));
      const core::Span span("wait for memory");
      memory.emplace(memory_.acquire(demand, [this] { return stop_.must_stop(); }));
    }
    if (stop_.must_stop()) {
      return;
    }
    admitted_.push_back({std::move(plan), std::move(*memory), small, {}, {}});
    if (!small || admitted_.size() == kSmallAtOnce) {
      run_admitted();
    }
  }

  /// Runs the groups that have been admitted: several small ones side by side, except that cases are submitted in order.
  void run_admitted() {
    std::vector<AdmittedGroup> groups = std::exchange(admitted_, {});
    if (groups.empty() || stop_.must_stop()) {
      return;
    }
    const auto for_each_group = [&groups](const auto& body) {
      if (groups.size() == 1) {  // on all threads
        body(groups.front());
      } else {
        core::parallel_for(groups.size(), [&](std::size_t i) { body(groups[i]); });
      }
    };
    for (const AdmittedGroup& group : groups) {
      started_.insert(group.plan.cases.begin(), group.plan.cases.end());
    }
    core::Span span("groups");
    span.note([&groups] { return core::counted(static_cast<double>(groups.size()), "group"); });
    for_each_group([this](AdmittedGroup& group) { work_.prepare(group); });
    std::exception_ptr failure;
    try {
      std::ranges::for_each(groups, [this](AdmittedGroup& group) { submit(group); });
    } catch (...) {
      failure = std::current_exception();  // cases that were submitted wait for their references
    }
    try {
      for_each_group([this](const AdmittedGroup& group) { work_.compute_references(group); });
    } catch (...) {
      failure = std::current_exception();
      for (const AdmittedGroup& group : groups) {
        if (group.shared) {
          prepare::give_up_references(*group.shared->group, failure);
        }
      }
    }
    if (failure) {
      std::rethrow_exception(failure);
    }
  }

  void submit(AdmittedGroup& group) {
    for (std::size_t i = 0; group.shared && i < group.made.cases.size(); ++i) {
      flights_.submit(group.plan.cases[i], group.shared, std::move(group.made.cases[i]));
    }
  }

  /// Of the budget, for blocks that are kept between cases.
  static std::uint64_t to_keep(std::uint64_t budget) {
    constexpr std::uint64_t kMost = std::uint64_t{2} << 30;
    return std::min(budget / 4, kMost);
  }

  /// Records cases that were never started, or given up.
  void finish_rest(const std::vector<std::size_t>& selected) {
    for (const std::size_t index : selected) {
      if (!results_.is_finished(index)) {
        flights_.skip(index, stop_.why_skipped(started_.contains(index)));
        over_budget_ += stop_.budget_used_up() ? 1 : 0;
      }
    }
  }

  const std::vector<plan::Case>& cases_;
  prepare::Catalog catalog_;
  const PipelineOptions& options_;
  const std::uint64_t budget_;
  core::KeptBlocks kept_;
  MemoryGate memory_;
  ResultCollector results_;
  worker::WorkerPool& pool_;
  bool is_last_;  ///< that uses the pool
  StopControl stop_;
  std::optional<Survey> survey_;
  std::optional<Handshake> handshake_;
  CaseFlights flights_;
  GroupWork work_;
  worker::WorkerHello hello_;
  std::size_t over_budget_ = 0;
  bool ended_ = false;
  std::set<std::size_t> started_;        ///< cases whose inputs were prepared
  std::vector<AdmittedGroup> admitted_;  ///< small groups that wait for others to be run with
};

}  // namespace

PipelineResult run_cases(const std::vector<plan::Case>& cases, prepare::Catalog catalog, const PipelineOptions& options,
                         const std::vector<std::pair<core::Digest, nlohmann::json>>& done) {
  worker::WorkerPool pool(options.workers);
  Pipeline pipeline(cases, catalog, options, pool, true);
  return pipeline.run(done);
}

PipelineResult run_cases(const std::vector<plan::Case>& cases, prepare::Catalog catalog, const PipelineOptions& options,
                         worker::WorkerPool& pool, const std::vector<std::pair<core::Digest, nlohmann::json>>& done) {
  Pipeline pipeline(cases, catalog, options, pool, false);
  return pipeline.run(done);
}

}  // namespace numcheck::run
