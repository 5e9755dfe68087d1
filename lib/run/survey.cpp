#include "run/survey.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace numcheck::run {
namespace {

/// How many cases to ask about in advance: a question has to wait for its worker's current task, and meanwhile earlier
/// groups are prepared.
constexpr std::size_t kAhead = 256;

}  // namespace

void Survey::ask_up_to(std::size_t group) {
  std::size_t ahead = 0;
  std::vector<std::size_t> indices;
  for (std::size_t i = group + 1; i < asked_groups_; ++i) {
    ahead += groups_[i].cases.size();
  }
  while (asked_groups_ < groups_.size() && (asked_groups_ <= group || ahead < kAhead)) {
    const prepare::GroupPlan& next = groups_[asked_groups_];
    indices.insert(indices.end(), next.cases.begin(), next.cases.end());
    ahead += asked_groups_ > group ? next.cases.size() : 0;
    ++asked_groups_;
  }
  ask(indices);
}

void Survey::ask(const std::vector<std::size_t>& indices) {
  std::map<worker::WorkerKey, std::vector<std::size_t>> by_key;
  for (const std::size_t index : indices) {
    by_key[worker::worker_key(cases_[index])].push_back(index);
  }
  for (auto& [key, part] : by_key) {
    worker::Question question;
    for (const std::size_t index : part) {
      question.cases.push_back(&cases_[index]);
    }
    question.on_answer = [this, part = std::move(part)](std::size_t i, const worker::Outcome& outcome) {
      {
        const std::lock_guard lock(mutex_);
        answers_[part[i]] = outcome;
      }
      answered_.notify_all();
    };
    pool_.ask(std::move(question));
  }
}

bool Survey::has_answers(const prepare::GroupPlan& group) const {
  return std::ranges::all_of(group.cases, [this](std::size_t index) { return answers_[index].has_value(); });
}

bool Survey::is_answered(const prepare::GroupPlan& group) {
  const std::lock_guard lock(mutex_);
  return has_answers(group);
}

void Survey::wait(const prepare::GroupPlan& group) {
  std::unique_lock lock(mutex_);
  answered_.wait(lock, [&] { return has_answers(group); });
}

std::optional<worker::Outcome> Survey::answer(std::size_t index) {
  const std::lock_guard lock(mutex_);
  return answers_[index];
}

}  // namespace numcheck::run
