// The first worker's introduction, awaited beside other work: starting a device takes a second, and inputs and
// references need none.
#pragma once

#include <functional>
#include <future>
#include <thread>

#include "plan/case.hpp"
#include "worker/workers.hpp"

namespace numcheck::run {

class Greeting {
 public:
  /// Asks the pool for the key's worker on a thread of its own, and tells `on_hello` (if any) before anybody
  /// who waits here goes on.
  Greeting(worker::WorkerPool& pool, const worker::WorkerKey& key,
           const std::function<void(const worker::WorkerHello&)>& on_hello);

  /// Waits; throws what the pool threw if there is no worker.
  [[nodiscard]] const worker::WorkerHello& hello() const { return answer_.get(); }
  /// Waits; true if there is no worker.
  [[nodiscard]] bool fails() const;
  /// Does not wait; true if it is already known that there is no worker.
  [[nodiscard]] bool has_failed() const;

 private:
  std::promise<worker::WorkerHello> promise_;
  std::shared_future<worker::WorkerHello> answer_ = promise_.get_future().share();
  std::jthread thread_;
};

}  // namespace numcheck::run
