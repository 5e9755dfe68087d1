#include "run/case_flights.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "core/cancel.hpp"
#include "core/parallel.hpp"
#include "core/trace.hpp"
#include "run/work_watch.hpp"
#include "worker/pool.hpp"

namespace numcheck::run {
namespace {

/// Comparing a small case takes about a millisecond of one core; a large one uses all cores by itself.
constexpr int kFewestThreads = 2;
constexpr int kMostThreads = 12;
/// Outputs above this size are not copied: their worker waits until they have been judged.
constexpr std::size_t kMostCopied = std::size_t{4} << 20;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

std::size_t evaluation_threads() {
  return static_cast<std::size_t>(std::clamp(3 * core::thread_count() / 4, kFewestThreads, kMostThreads));
}

std::size_t output_bytes(std::span<const worker::HostPort> ports) {
  std::size_t bytes = 0;
  for (const worker::HostPort& port : ports) {
    bytes += worker::use_of(*port.port) == worker::BlockUse::output ? port.bytes.size() : 0;
  }
  return bytes;
}

}  // namespace

/// A case in progress; its buffers live until its last comparison.
struct CaseFlights::Flight {
  std::size_t index = 0;
  std::shared_ptr<SharedGroup> shared;
  prepare::PreparedCase prepared;
  verdict::CaseResult result;
  bool cancelled = false;  ///< the run ends before a verdict; only on the strand
  std::shared_ptr<EvaluationQueue::Strand> strand = std::make_shared<EvaluationQueue::Strand>();
};

/// One run with the outputs that it left: the worker's next run writes over them.
struct CaseFlights::Run {
  worker::RunReport report;
  std::vector<worker::HostPort> ports;
  core::Buffer<std::byte> copies;

  void copy_outputs() {
    copies = core::Buffer<std::byte>(output_bytes(ports));
    std::span<std::byte> rest = copies.span();
    for (worker::HostPort& port : ports) {
      if (worker::use_of(*port.port) == worker::BlockUse::output) {
        const std::span<std::byte> copy = rest.first(port.bytes.size());
        rest = rest.subspan(copy.size());
        std::ranges::copy(port.bytes, copy.begin());
        port.bytes = copy;
      }
    }
  }
};

CaseFlights::CaseFlights(const std::vector<plan::Case>& cases, const PipelineOptions& options,
                         const std::optional<Handshake>& handshake, ResultCollector& results, StopControl& stop,
                         worker::WorkerPool& pool)
    : cases_(cases),
      options_(options),
      handshake_(handshake),
      results_(results),
      stop_(stop),
      pool_(pool),
      today_(today()),
      queue_(evaluation_threads(), [&pool] { pool.cancel_pending(); }) {}

void CaseFlights::submit(std::size_t index, std::shared_ptr<SharedGroup> shared, prepare::PreparedCase prepared) {
  auto flight = std::make_shared<Flight>();
  flight->index = index;
  flight->shared = std::move(shared);
  flight->prepared = std::move(prepared);
  flight->result.c = &cases_[index];
  worker::Task task;
  task.c = &cases_[index];
  task.ports = flight->prepared.host;
  task.blocks = flight->prepared.blocks;
  task.on_run = [this, flight](const worker::RunReport& report) { on_run(flight, report); };
  task.on_end = [this, flight](const worker::Outcome& outcome) {
    if (worker::is_interrupt(outcome)) {
      return;  // whoever ends the run records it
    }
    queue_.post(flight->strand, [this, flight, outcome] {
      if (!flight->cancelled) {  // otherwise as above
        conclude(flight->index, flight->result, outcome);
      }
      flight->prepared = {};
      flight->shared.reset();
    });
    wait_if_failures_stop(*flight);
  };
  pool_.submit(std::move(task));
}

void CaseFlights::on_run(const std::shared_ptr<Flight>& flight, const worker::RunReport& report) {
  auto run = std::make_shared<Run>(Run{report, flight->prepared.host, {}});
  const bool is_only_run = flight->result.c->algorithms.kind == plan::AlgorithmSpec::Kind::heuristic;
  const bool too_large = output_bytes(run->ports) > kMostCopied;
  if (!is_only_run && !too_large) {
    run->copy_outputs();
  }
  queue_.post(flight->strand, [this, flight, run] { judge(*flight, *run); });
  if (!is_only_run && too_large) {
    queue_.wait(*flight->strand);
  }
}

void CaseFlights::wait_if_failures_stop(const Flight& flight) {
  if (options_.stop_after_failures != 0) {
    queue_.wait(*flight.strand);
  }
}

void CaseFlights::judge(Flight& flight, const Run& run) {
  const plan::Case& c = cases_[flight.index];
  const core::SerialSection serial(flight.shared->is_small);
  const core::TraceSection section(options_.workers.trace, "judge", {.name = c.id});
  const auto broken = [&](verdict::Status status, std::string why) {
    verdict::RunResult result;
    result.run = run.report;
    result.status = status;
    result.failing = std::move(why);
    flight.result.runs.push_back(std::move(result));
  };
  wait_for_references(flight);
  const auto work = stop_.work().begin(fmt::format("the comparison of {}", c.id),
                                       {.time_s = c.timeout_s.value_or(options_.workers.timeout_s)});
  try {
    work.run([&] { compare(flight, run); });
    explain(flight, run);
  } catch (const core::Cancelled&) {
    flight.cancelled = true;
    return;
  } catch (const OutOfTime& limit) {
    broken(verdict::Status::timeout, fmt::format("{}; the outputs were not judged", limit.what()));
  } catch (const std::exception& failure) {
    broken(verdict::Status::error, fmt::format("cannot compare the outputs: {}", failure.what()));
  }
  flight.result.times.device_s += run.report.device_s;
}

void CaseFlights::wait_for_references(Flight& flight) {
  const core::Span span("wait for references");
  const prepare::Group& group = *flight.shared->group;
  prepare::wait_for_references(group, *flight.prepared.rounding);
  if (flight.result.runs.empty()) {
    flight.result.times += prepare::times_of(group, flight.prepared);
  }
}

void CaseFlights::compare(Flight& flight, const Run& run) {
  const core::Span span("comparison");
  const machine::Device& device = handshake_->hello().device;
  prepare::Group& group = *flight.shared->group;
  verdict::EvaluationContext context{&group,
                                     &flight.prepared,
                                     run.ports,
                                     &device,
                                     prepare::arithmetic_of(*group.row, run.report.backend),
                                     &flight.shared->cache,
                                     options_.all_maps};
  flight.result.runs.push_back(verdict::evaluate_run(context, run.report, flight.result.times.comparison_s));
  show_tensors(flight, context);
}

void CaseFlights::explain(Flight& flight, const Run& run) {
  verdict::RunResult& result = flight.result.runs.back();
  if (!options_.explain_failure || result.status != verdict::Status::fail) {
    return;
  }
  const plan::Case& c = cases_[flight.index];
  const core::Span span("diagnosis");
  const auto work = stop_.work().begin(fmt::format("the diagnosis of {}", c.id),
                                       {.time_s = c.timeout_s.value_or(options_.workers.timeout_s)});
  try {
    work.run([&] {
      std::optional<op::Finding> finding = options_.explain_failure(c, result, run.ports);
      const auto output = finding.has_value()
                              ? std::ranges::find(result.outputs, finding->port, &verdict::OutputResult::port)
                              : result.outputs.end();
      if (output != result.outputs.end()) {
        output->findings.push_back(std::move(*finding));
      }
    });
  } catch (const std::exception&) {  // also if it is stopped, or takes too long: the verdict stands
  }
}

void CaseFlights::show_tensors(const Flight& flight, const verdict::EvaluationContext& context) {
  const std::vector<verdict::RunResult>& runs = flight.result.runs;
  if (!options_.on_tensors || !runs.back().run.error.empty()) {
    return;
  }
  const core::Span span("keep tensors");
  std::vector<const op::OutputValues*> expected;
  for (const op::Port& port : flight.prepared.ports) {
    if (port.role == op::Role::output || port.role == op::Role::amax) {
      const op::OutputValues& values = verdict::expected_values(context, port);
      if (values.port == port.name) {  // otherwise an amax, which follows from another output
        expected.push_back(&values);
      }
    }
  }
  options_.on_tensors(
      {flight.result.c, runs.size() - 1, &runs.back(), context.host, expected, &flight.shared->group->sample});
}

void CaseFlights::conclude(std::size_t index, verdict::CaseResult& result, const worker::Outcome& outcome) {
  result.c = &cases_[index];
  verdict::conclude(result, outcome, known_issues_of(*result.c), today_);
  finish(index, result);
}

std::vector<plan::XFail> CaseFlights::known_issues_of(const plan::Case& c) const {
  std::optional<plan::DeviceFacts> device;
  if (!c.known_issues.empty() && handshake_ && !handshake_->fails()) {
    const worker::WorkerHello& hello = handshake_->hello();
    device = {hello.device.sm, hello.device.driver, hello.libraries};
  }
  return plan::known_issues_on(c, device);
}

void CaseFlights::refuse(std::size_t index, const worker::Outcome& answer) {
  if (!worker::is_interrupt(answer)) {
    verdict::CaseResult result;
    conclude(index, result, answer);
  }
}

void CaseFlights::skip(std::size_t index, std::string reason) {
  finish_with(index, verdict::Status::skipped, std::move(reason));
}

void CaseFlights::fail(std::size_t index, std::string reason) {
  finish_with(index, verdict::Status::error, std::move(reason));
}

void CaseFlights::time_out(std::size_t index, std::string reason) {
  finish_with(index, verdict::Status::timeout, std::move(reason));
}

void CaseFlights::finish_with(std::size_t index, verdict::Status status, std::string reason) {
  verdict::CaseResult result;
  result.c = &cases_[index];
  result.status = status;
  result.reason = std::move(reason);
  verdict::note_expired(result, known_issues_of(*result.c), today_);
  finish(index, result);
}

void CaseFlights::finish(std::size_t index, const verdict::CaseResult& result) {
  const core::TraceSection section(options_.workers.trace, "judge", {.name = cases_[index].id});
  const bool has_worker = handshake_ && !handshake_->fails();
  results_.finish(index, result, has_worker);
  if (stop_.must_stop()) {
    pool_.cancel_pending();
  }
}

void CaseFlights::wait_idle() {
  pool_.wait_idle();
  queue_.wait_idle();
}

}  // namespace numcheck::run
