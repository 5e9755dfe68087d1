#include "rerun.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "case_of_record.hpp"
#include "catalog.hpp"
#include "core/error.hpp"
#include "diagnose/subject_of_run.hpp"
#include "files.hpp"
#include "run/pipeline.hpp"
#include "selection.hpp"

namespace numcheck::app {
namespace {

using nlohmann::json;

plan::Case case_named(const json& report, const std::string& name) {
  if (report.value("brief", false)) {
    throw core::UsageError("a brief report does not say what its cases are made of: give the full report.json");
  }
  std::vector<plan::Case> cases;
  for (const json& record : report.at("cases")) {
    cases.push_back(case_of_record(record));
  }
  const core::Digest digest = named_case(cases, name, "--case");
  return *std::ranges::find(cases, digest, &plan::Case::digest);
}

/// Settings of the report that decide what the case leaves.
void take_settings(const json& report, const plan::Case& c, ExecutionOptions& options) {
  const json& device = report.at("machine").at("device");
  if (options.device.empty() || options.device == "auto") {
    const bool is_simulated = device.is_object() && device.value("simulated", false);
    options.device = is_simulated ? fmt::format("sim:sm_{}", device.at("sm").get<int>()) : "auto";
  }
  const json& settings = report.at("settings");
  const auto planted_in = settings.value("inject_cases", std::vector<std::string>());
  const bool is_planted = planted_in.empty() || std::ranges::any_of(planted_in, [&](const std::string& name) {
                            return name == c.id || c.digest.hex().starts_with(name);
                          });
  if (options.inject.empty() && settings.value("inject", json()).is_string() && is_planted) {
    options.inject = settings.at("inject").get<std::string>();
  }
}

}  // namespace

diagnose::Subject rerun(const std::string& report_path, const std::string& name, ExecutionOptions options) {
  const json report = read_report(report_path);
  const plan::Case c = case_named(report, name);
  take_settings(report, c, options);
  run::PipelineOptions pipeline = pipeline_options(options);
  std::mutex mutex;
  machine::Device device;
  std::optional<diagnose::Subject> subject;
  bool has_failed = false;
  pipeline.on_hello = [&](const worker::WorkerHello& hello) {
    const std::lock_guard lock(mutex);
    device = hello.device;
  };
  pipeline.on_tensors = [&](const run::RunTensors& tensors) {
    const std::lock_guard lock(mutex);
    if (!has_failed) {
      subject = diagnose::subject_of_run(catalog(), *tensors.c, *tensors.result, tensors.ports, device);
      has_failed = tensors.result->status == verdict::Status::fail;
    }
  };
  const run::PipelineResult result = run::run_cases({c}, catalog(), pipeline);
  if (!subject.has_value()) {
    throw core::EnvironmentError(
        fmt::format("{} left no outputs: {}", c.id, result.cases.front().record.value("reason", "")));
  }
  return std::move(*subject);
}

}  // namespace numcheck::app
