// Waits for the first worker's hello in the background: starting a device takes a second, and inputs and references
// need none.
#pragma once

#include <functional>
#include <future>
#include <thread>

#include "plan/case.hpp"
#include "worker/workers.hpp"

namespace numcheck::run {

class Handshake {
 public:
  /// Asks the pool for the key's worker on a separate thread. Calls `on_hello` (if set) before hello() returns.
  Handshake(worker::WorkerPool& pool, const worker::WorkerKey& key,
            const std::function<void(const worker::WorkerHello&)>& on_hello);

  /// Waits; rethrows the pool's exception if no worker could be started.
  [[nodiscard]] const worker::WorkerHello& hello() const { return answer_.get(); }
  /// Waits; true if no worker could be started.
  [[nodiscard]] bool fails() const;
  /// Does not wait; true if starting a worker has already failed.
  [[nodiscard]] bool has_failed() const;

 private:
  std::promise<worker::WorkerHello> promise_;
  std::shared_future<worker::WorkerHello> answer_ = promise_.get_future().share();
  std::jthread thread_;
};

}  // namespace numcheck::run
