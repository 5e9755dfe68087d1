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

class WorkerPool::Impl {
 public:
  explicit Impl(WorkerOptions options)
      : pool(options.in_process ? make_in_process_pool(std::move(options)) : make_process_pool(std::move(options))) {}
  std::unique_ptr<Pool> pool;
};

WorkerPool::WorkerPool(WorkerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
WorkerPool::~WorkerPool() = default;

std::shared_ptr<SharedBlock> WorkerPool::allocate(std::size_t bytes, BlockUse use) {
  return impl_->pool->allocate(bytes, use);
}
WorkerHello WorkerPool::hello(const WorkerKey& key) {
  return impl_->pool->hello(key);
}
void WorkerPool::ask(Question question) {
  const bool alike = std::ranges::all_of(question.cases, [&question](const plan::Case* c) {
    return worker_key(*c) == worker_key(*question.cases.front());
  });
  if (!alike || !question.on_answer) {
    throw core::InternalError(
        "a question is about the cases of one kind of worker, and wants somebody who hears the answers");
  }
  if (!question.cases.empty()) {
    impl_->pool->ask(std::move(question));
  }
}
void WorkerPool::submit(Task task) {
  impl_->pool->submit(std::move(task));
}
void WorkerPool::wait_idle() {
  impl_->pool->wait_idle();
}
void WorkerPool::cancel_pending() {
  impl_->pool->cancel_pending();
}
void WorkerPool::kill_workers() {
  impl_->pool->kill_workers();
}

}  // namespace numcheck::worker
