#include "run/workers.hpp"

#include <utility>

#include "run/pool.hpp"

namespace numcheck::run {

class WorkerPool::Impl {
 public:
  explicit Impl(WorkerOptions options)
      : pool(options.in_process ? make_in_process_pool(std::move(options)) : make_process_pool(std::move(options))) {}
  std::unique_ptr<Pool> pool;
};

WorkerPool::WorkerPool(WorkerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
WorkerPool::~WorkerPool() = default;

std::shared_ptr<SharedBlock> WorkerPool::allocate(std::size_t bytes) {
  return impl_->pool->allocate(bytes);
}
WorkerHello WorkerPool::hello(const plan::Environment& environment) {
  return impl_->pool->hello(environment);
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

}  // namespace numcheck::run
