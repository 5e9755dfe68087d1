#include "worker/workers.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "plan/backend_name.hpp"
#include "worker/pool.hpp"

namespace numcheck::worker {

WorkerKey worker_key(const plan::Case& c) {
  return {c.environment, std::string(plan::version_of(c.backend))};
}

ExecuteOptions execute_options(const WorkerOptions& options, const plan::Case& c) {
  ExecuteOptions execute = options.execute;
  if (!options.inject_only.empty() && !options.inject_only.contains(c.digest)) {
    execute.inject.clear();
  }
  return execute;
}

WorkerPool::WorkerPool(WorkerOptions options)
    : pool_(options.in_process ? make_in_process_pool(std::move(options)) : make_process_pool(std::move(options))) {}
WorkerPool::~WorkerPool() = default;

std::shared_ptr<SharedBlock> WorkerPool::allocate(std::size_t bytes, BlockUse use) {
  return pool_->allocate(bytes, use);
}
WorkerHello WorkerPool::hello(const WorkerKey& key) {
  return pool_->hello(key);
}
void WorkerPool::ask(Question question) {
  const bool alike = std::ranges::all_of(question.cases, [&question](const plan::Case* c) {
    return worker_key(*c) == worker_key(*question.cases.front());
  });
  if (!alike || !question.on_answer) {
    throw core::InternalError("a question needs cases with the same worker key, and an on_answer callback");
  }
  if (!question.cases.empty()) {
    pool_->ask(std::move(question));
  }
}
void WorkerPool::submit(Task task) {
  pool_->submit(std::move(task));
}
void WorkerPool::expect_no_more() {
  pool_->expect_no_more();
}
void WorkerPool::wait_idle() {
  pool_->wait_idle();
}
void WorkerPool::cancel_pending() {
  pool_->cancel_pending();
}
void WorkerPool::kill_workers() {
  pool_->kill_workers();
}

}  // namespace numcheck::worker
