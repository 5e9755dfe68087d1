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

}  // namespace

ConfigurationSurvey survey_configurations(std::vector<plan::Case> cases, worker::WorkerOptions options) {
  options.execute.configurations = true;
  worker::WorkerPool pool(std::move(options));
  const std::vector<std::optional<worker::Outcome>> answers = ask_all(cases, pool);
  ConfigurationSurvey survey;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<std::string> shown;
    bool is_new = !answers[i].has_value();
    if (answers[i].has_value()) {
      ++survey.counts.asked;
      const std::string experiment = experiment_of(cases[i]) + " | ";
      for (const std::string& key : answers[i]->configurations) {
        shown.push_back(key);
        is_new = seen.insert(experiment + key).second || is_new;
        survey.counts.offered.insert(key);
      }
      if (answers[i]->kind != worker::Outcome::Kind::done) {
        is_new = seen.insert(experiment + answers[i]->reason).second;
      } else if (shown.empty()) {
        is_new = true;
      }
      survey.counts.kept += is_new ? 1 : 0;
    }
    if (is_new) {
      survey.cases.push_back(std::move(cases[i]));
      survey.configurations.push_back(std::move(shown));
    }
  }
  return survey;
}

}  // namespace numcheck::run
