#include "run_diagnosis.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "catalog.hpp"
#include "core/error.hpp"
#include "diagnose/subject_of_run.hpp"
#include "fault_simulator.hpp"

namespace numcheck::app {
namespace {

constexpr std::size_t kFirst = 3;  // of the failures of a run, on a terminal

/// What does not hold up a run for long.
constexpr diagnose::Effort kEffort{.declared_flops = 2e10, .trial_flops = 2e9, .pairs_s = 2};

bool names_cause(const verdict::OutputResult& output) {
  return std::ranges::any_of(output.findings, [](const op::Finding& finding) { return !finding.cause.empty(); });
}

std::shared_ptr<const diagnose::Simulator> simulator_of(const machine::Device& device) {
  try {
    return make_fault_simulator(device.sm);
  } catch (const core::Error&) {  // an architecture that is not modelled
    return nullptr;
  }
}

}  // namespace

DiagnoseWhich parse_diagnose(const std::string& text, bool on_terminal) {
  const std::vector<std::string_view> kWords = {"never", "failed", "all"};
  if (text.empty()) {
    return on_terminal ? DiagnoseWhich::first : DiagnoseWhich::never;
  }
  require_known(text, "value of --diagnose", kWords);
  return text == "never" ? DiagnoseWhich::never : text == "failed" ? DiagnoseWhich::failed : DiagnoseWhich::all;
}

void RunDiagnosis::connect(DiagnoseWhich which, run::PipelineOptions& pipeline) {
  which_ = which;
  if (which != DiagnoseWhich::never) {
    pipeline.explain_failure = [this](const plan::Case& c, const verdict::RunResult& result,
                                      std::span<const worker::HostPort> ports) { return explain(c, result, ports); };
  }
}

void RunDiagnosis::set_device(const machine::Device& device) {
  const std::lock_guard lock(mutex_);
  device_ = device;
}

bool RunDiagnosis::takes(const verdict::RunResult& result) {
  if (which_ != DiagnoseWhich::all && std::ranges::any_of(result.outputs, names_cause)) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  return which_ != DiagnoseWhich::first || taken_++ < kFirst;
}

std::optional<op::Finding> RunDiagnosis::explain(const plan::Case& c, const verdict::RunResult& result,
                                                 std::span<const worker::HostPort> ports) {
  if (!takes(result)) {
    return std::nullopt;
  }
  std::unique_lock lock(mutex_);
  if (simulator_ == nullptr) {
    simulator_ = simulator_of(device_);
  }
  const machine::Device device = device_;
  const std::shared_ptr<const diagnose::Simulator> simulator = simulator_;
  lock.unlock();
  diagnose::Subject subject = diagnose::subject_of_run(catalog(), c, result, ports, device);
  subject.simulator = simulator;
  return diagnose::finding_of(diagnose::diagnose(subject, kEffort));
}

}  // namespace numcheck::app
