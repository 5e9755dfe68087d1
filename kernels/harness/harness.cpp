#include "kernels/harness/harness.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/harness/classify_sums.hpp"
#include "kernels/harness/memory_fault.hpp"
#include "kernels/harness/passes.hpp"
#include "kernels/harness/session.hpp"

namespace numcheck::kernels::harness {
namespace {

/// Keeps the first damage only.
void note_damage(worker::RunReport& report, bool& intact, const std::string& damage) {
  if (damage.empty()) {
    return;
  }
  intact = false;
  if (report.guard_detail.empty()) {
    report.guard_detail = damage;
  }
}

/// Checks the run that the session looks at: the first of `runs`, or another one. Returns what changed in the inputs.
std::string check_run(Session& session, bool first, int runs, worker::RunReport& report) {
  note_damage(report, report.guards_intact, session.guard_damage());
  // After every run: two runs may undo each other's damage.
  std::string changed = session.changed_input();
  note_damage(report, report.inputs_intact, changed);
  if (first) {
    session.download_outputs(runs > 1);
    note_damage(report, report.guards_intact, session.changed_padding());
    report.outputs = session.digests();
  } else {
    session.compare_outputs(report.outputs);
  }
  return changed;
}

void add_shown(const Algorithm& algorithm, worker::RunReport& report) {
  Shown shown = algorithm.shown();
  std::ranges::move(shown.details, std::back_inserter(report.details));
  report.rounding.slices = std::max(report.rounding.slices, shown.slices);
  if (!shown.group_slices.empty()) {
    report.rounding.group_slices = std::move(shown.group_slices);
  }
}

/// Runs one algorithm `repeats` times. Adds the device seconds to `total_s`; the report gets those of the shortest run.
void measure(Session& session, const Algorithm& algorithm, int repeats, std::string_view fault,
             worker::RunReport& report, double& total_s) {
  int checked = 0;
  for (int first = 0; first < repeats; first += checked) {
    const int count = std::min(session.runs_at_once(algorithm), repeats - first);
    const std::vector<double> seconds = session.launch(algorithm, first, count, fault);
    if (first == 0 && algorithm.shown) {
      add_shown(algorithm, report);
    }
    bool changed = false;
    // Runs that were started on inputs that an earlier one had changed are repeated.
    for (checked = 0; checked < count && !changed; ++checked) {
      const int i = checked;
      total_s += seconds[static_cast<std::size_t>(i)];
      report.device_s =
          first + i == 0 ? seconds.front() : std::min(report.device_s, seconds[static_cast<std::size_t>(i)]);
      session.look_at(i);
      changed = !check_run(session, first + i == 0, repeats, report).empty();
    }
    if (!report.guards_intact) {
      session.restore_guards();
    }
    if (changed) {
      session.upload_inputs();
    }
  }
}

std::vector<op::Port> ports_of(std::span<const worker::HostPort> host) {
  std::vector<op::Port> ports;
  std::ranges::transform(host, std::back_inserter(ports), [](const worker::HostPort& port) { return *port.port; });
  return ports;
}

/// The step's error message; empty if it succeeded. NotSupported propagates, and so do errors that come with a lost
/// device, which the case boundary reports.
template <class Step>
std::string attempt(Session& session, const Step& step) {
  try {
    step();
    return {};
  } catch (const NotSupported&) {
    throw;
  } catch (const std::exception& error) {
    if (session.launcher().loss(session.memory())) {
      throw;
    }
    return error.what();
  }
}

/// The outputs of one run; none if it failed.
std::vector<worker::OutputDigest> outputs_of(Session& session, const Algorithm& algorithm) {
  worker::RunReport report;
  double ignored = 0;
  if (!attempt(session, [&] { measure(session, algorithm, 1, {}, report, ignored); }).empty()) {
    session.restore_guards();
    session.upload_inputs();
    return {};
  }
  return std::move(report.outputs);
}

/// The runs of a planted fault left what one without it left, as a fault may whose place these inputs or this shape do not
/// have.
bool fault_is_unseen(const worker::RunReport& report, const std::vector<worker::OutputDigest>& sound) {
  return report.error.empty() && report.guards_intact && report.inputs_intact && report.deterministic() &&
         !sound.empty() &&
         std::ranges::equal(report.outputs, sound, {}, &worker::OutputDigest::digest, &worker::OutputDigest::digest);
}

worker::RunReport describe(const Backend& backend, const Algorithm& algorithm) {
  worker::RunReport report;
  report.backend = backend.name();
  report.label = algorithm.label;
  report.details = algorithm.details;
  report.workspace_bytes = algorithm.workspace_bytes;
  report.rounding = algorithm.rounding;
  report.unordered = algorithm.unordered;
  return report;
}

void set_class(worker::RunReport& report, const Classification& found) {
  report.observed = found.precision;
  report.conversion = found.conversion;
  if (!found.note.empty()) {
    report.details.emplace_back("classification", found.note);
  }
}

using Probe = decltype(&classify_algorithm);

/// What shows the class of such a case; null: nothing does.
Probe probe_of(const Call& call) {
  return classification_obstacle(call).empty() ? &classify_algorithm
         : sums_obstacle(call).empty()         ? &classify_sums
                                               : nullptr;
}

/// Class of every algorithm; an algorithm that throws gets its report's error.
void classify_all(Session& session, Backend& backend, const Call& call, Probe probe,
                  std::span<const Algorithm> algorithms, std::map<std::string, Classification, std::less<>>& known,
                  std::vector<worker::RunReport>& reports) {
  prepare_classification(session.memory(), session.ports());
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    // How a simulated algorithm rounds operands does not depend on the shape; on hardware every case is probed. What a fault does
    // to the probe, and how sums are promoted, is up to the case's parameters.
    const bool is_shared = backend.device().simulated && call.inject.empty() && probe == &classify_algorithm;
    const std::string key = fmt::format("{}/{}/{}", backend.device().sm, call.c->mode->name, algorithms[i].label);
    const auto cached = is_shared ? known.find(key) : known.end();
    if (cached != known.end()) {
      set_class(reports[i], cached->second);
      continue;
    }
    const std::string error = attempt(session, [&] {
      const Classification found = probe(algorithms[i], call, session.memory(), session.ports(),
                                         session.workspace_for(algorithms[i]).data(), session.launcher());
      set_class(reports[i], found);
      if (is_shared) {
        known.emplace(key, found);
      }
    });
    reports[i].error = error.empty() ? error : "classification: " + error;
  }
  session.restore_guards();
}

}  // namespace

worker::Outcome Harness::run(Backend& backend, const plan::Case& c, std::span<const worker::HostPort> host,
                             const worker::ExecuteOptions& options, const worker::RunSink& sink) try {
  using Kind = worker::Outcome::Kind;
  launcher_.note_call();
  const std::vector<op::Port> ports = ports_of(host);
  const std::string fault = is_memory_fault(options.inject) ? options.inject : std::string();
  const Call call{&c, ports, fault.empty() ? options.inject : std::string()};
  if (Support support = supports(backend, call); !support.yes) {
    return {Kind::unsupported, std::move(support.reason), 0};
  }
  const std::vector<Algorithm> algorithms = algorithms_of(backend, call);
  if (algorithms.empty()) {
    return {Kind::unsupported, fmt::format("{} offers no algorithm for this case", backend.name()), 0};
  }
  Session session(backend, ports, host, staging_, launcher_);
  if (std::string obstacle = fault.empty() ? std::string() : memory_fault_obstacle(fault, session.ports());
      !obstacle.empty()) {
    return {Kind::unsupported, std::move(obstacle), 0};
  }

  std::vector<worker::RunReport> reports;
  std::ranges::transform(algorithms, std::back_inserter(reports),
                         [&backend](const Algorithm& algorithm) { return describe(backend, algorithm); });
  if (const Probe probe = options.classify ? probe_of(call) : nullptr; probe != nullptr) {
    classify_all(session, backend, call, probe, algorithms, simulated_classes_, reports);
  }
  session.upload_inputs();
  const std::vector<Algorithm> sound =
      options.inject.empty() ? std::vector<Algorithm>() : algorithms_of(backend, {&c, ports, {}});
  worker::Outcome outcome;
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    const bool has_sound = sound.size() == algorithms.size() && reports[i].error.empty();
    const auto expected = has_sound ? outputs_of(session, sound[i]) : std::vector<worker::OutputDigest>();
    if (reports[i].error.empty()) {
      reports[i].error = attempt(session, [&] {
        measure(session, algorithms[i], std::max(options.repeats, 1), fault, reports[i], outcome.device_s);
      });
    }
    reports[i].fault_unseen = fault_is_unseen(reports[i], expected);
    const bool failed = !reports[i].error.empty();
    if (failed) {
      reports[i].outputs.clear();
    }
    sink(reports[i]);
    if (failed) {
      session.restore_guards();
      session.upload_inputs();
    }
  }
  return outcome;
} catch (const NotSupported& refusal) {
  return {worker::Outcome::Kind::unsupported, refusal.what(), 0};
}

std::optional<worker::DeviceLoss> Harness::device_loss(DeviceMemory& memory) noexcept {
  return launcher_.loss(memory);
}

worker::Outcome run_case(Backend& backend, const plan::Case& c, std::span<const worker::HostPort> ports,
                         const worker::ExecuteOptions& options, const worker::RunSink& sink) {
  return Harness().run(backend, c, ports, options, sink);
}

}  // namespace numcheck::kernels::harness
