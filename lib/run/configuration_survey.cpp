#include "run/configuration_survey.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "op/value.hpp"
#include "worker/pool.hpp"
#include "worker/start_thread.hpp"

namespace numcheck::run {
namespace {

/// Workers share a survey in pieces of this size.
constexpr std::size_t kCasesPerQuestion = 1000;

/// What makes equal kernels different experiments.
std::string experiment_of(const plan::Case& c) {
  std::string text = fmt::format("{} {} {} {}", c.op->name, c.mode->name, c.backend, c.inputs.common.name);
  for (const op::Value& value : c.inputs.common.params) {
    text += " " + op::value_text(value);
  }
  for (const auto& [port, distribution] : c.inputs.ports) {
    text += " " + port + "=" + distribution.name;
    for (const op::Value& value : distribution.params) {
      text += " " + op::value_text(value);
    }
  }
  for (const auto& [name, value] : c.environment) {
    text += " " + name + "=" + value.value_or("unset");
  }
  return text;
}

std::vector<std::optional<worker::Outcome>> ask_all(const std::vector<plan::Case>& cases, worker::WorkerPool& pool) {
  std::vector<std::optional<worker::Outcome>> answers(cases.size());
  std::map<worker::WorkerKey, std::vector<std::size_t>> by_key;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].only_if_new) {
      by_key[worker::worker_key(cases[i])].push_back(i);
    }
  }
  std::mutex mutex;
  for (const auto& [key, all] : by_key) {
    for (std::size_t begin = 0; begin < all.size(); begin += kCasesPerQuestion) {
      std::vector<std::size_t> part(
          all.begin() + static_cast<std::ptrdiff_t>(begin),
          all.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kCasesPerQuestion, all.size())));
      worker::Question question;
      for (const std::size_t index : part) {
        question.cases.push_back(&cases[index]);
      }
      question.on_answer = [&answers, &mutex, part = std::move(part)](std::size_t i, const worker::Outcome& outcome) {
        const std::lock_guard lock(mutex);
        answers[part[i]] = outcome;
      };
      pool.ask(std::move(question));
    }
  }
  pool.wait_idle();
  return answers;
}

/// Ends the pool's work at an interrupt: a question takes long, and nothing has been computed that would be lost.
void watch(worker::WorkerPool& pool, const std::function<int()>& interrupted, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && interrupted() == 0) {
    stopped.wait_for(lock, stop, std::chrono::milliseconds(50), [&stop] { return stop.stop_requested(); });
  }
  if (!stop.stop_requested()) {
    pool.cancel_pending();
    pool.kill_workers();
  }
}

/// Whether a case shows something that no earlier one did; `seen` remembers.
bool shows_something_new(const worker::Outcome& answer, const std::string& experiment, std::set<std::string>& seen) {
  using Kind = worker::Outcome::Kind;
  if (answer.kind == Kind::unsupported) {
    return seen.insert(experiment + answer.reason).second;
  }
  // A question that failed, or a backend that names no configurations, says nothing about what the case would show.
  bool is_new = answer.kind != Kind::done || answer.configurations.empty();
  for (const std::string& key : answer.configurations) {
    is_new = seen.insert(experiment + key).second || is_new;
  }
  return is_new;
}

}  // namespace

ConfigurationSurvey survey_configurations(std::vector<plan::Case> cases, worker::WorkerOptions options,
                                          const std::function<int()>& interrupted) {
  options.execute.configurations = true;
  worker::WorkerPool pool(std::move(options));
  std::jthread watcher;
  if (interrupted) {
    watcher = worker::start_thread<std::jthread>("to watch for interrupts",
                                                 [&](const std::stop_token& stop) { watch(pool, interrupted, stop); });
  }
  std::vector<std::optional<worker::Outcome>> answers = ask_all(cases, pool);
  ConfigurationSurvey survey;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const bool asked = answers[i].has_value() && !worker::is_interrupt(*answers[i]);
    if (cases[i].only_if_new && !asked) {
      continue;  // the survey was interrupted: nobody knows whether this case would have run
    }
    if (asked) {
      ++survey.counts.asked;
      survey.counts.offered.insert(answers[i]->configurations.begin(), answers[i]->configurations.end());
      if (!shows_something_new(*answers[i], experiment_of(cases[i]) + " | ", seen)) {
        continue;
      }
      ++survey.counts.kept;
      survey.configurations.emplace(cases[i].digest, std::move(answers[i]->configurations));
    }
    survey.cases.push_back(std::move(cases[i]));
  }
  return survey;
}

std::set<std::string> verified_configurations(const ConfigurationsOfCases& configurations,
                                              std::span<const plan::Case> cases,
                                              std::span<const FinishedCase> results) {
  std::set<std::string> verified;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto shown = configurations.find(cases[i].digest);
    if (shown != configurations.end() && verdict::is_judged(results[i].status)) {
      verified.insert(shown->second.begin(), shown->second.end());
    }
  }
  return verified;
}

}  // namespace numcheck::run
