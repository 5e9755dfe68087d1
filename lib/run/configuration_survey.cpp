#include "run/configuration_survey.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "op/value.hpp"

namespace numcheck::run {
namespace {

/// What makes equal kernels different experiments.
std::string experiment_of(const plan::Case& c) {
  std::string text = fmt::format("{} {} {} {}", c.op->name, c.mode->name, c.backend, c.inputs.common.name);
  for (const op::Value& value : c.inputs.common.params) {
    text += " " + op::value_text(value);
  }
  for (const auto& [port, distribution] : c.inputs.ports) {
    text += " " + port + "=" + distribution.name;
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
  for (auto& [key, part] : by_key) {
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
  pool.wait_idle();
  return answers;
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

ConfigurationSurvey survey_configurations(std::vector<plan::Case> cases, worker::WorkerOptions options) {
  options.execute.configurations = true;
  worker::WorkerPool pool(std::move(options));
  std::vector<std::optional<worker::Outcome>> answers = ask_all(cases, pool);
  ConfigurationSurvey survey;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<std::string> shown;
    if (answers[i].has_value()) {
      ++survey.counts.asked;
      survey.counts.offered.insert(answers[i]->configurations.begin(), answers[i]->configurations.end());
      if (!shows_something_new(*answers[i], experiment_of(cases[i]) + " | ", seen)) {
        continue;
      }
      ++survey.counts.kept;
      shown = std::move(answers[i]->configurations);
    }
    survey.cases.push_back(std::move(cases[i]));
    survey.configurations.push_back(std::move(shown));
  }
  return survey;
}

}  // namespace numcheck::run
