#include "run/handshake.hpp"

#include <chrono>
#include <exception>

#include "worker/start_thread.hpp"

namespace numcheck::run {

Handshake::Handshake(worker::WorkerPool& pool, const worker::WorkerKey& key,
                     const std::function<void(const worker::WorkerHello&)>& on_hello) {
  thread_ = worker::start_thread<std::jthread>("to wait for the first worker", [this, &pool, key, on_hello] {
    try {
      worker::WorkerHello hello = pool.hello(key);
      if (on_hello) {
        on_hello(hello);
      }
      promise_.set_value(std::move(hello));
    } catch (...) {
      promise_.set_exception(std::current_exception());
    }
  });
}

bool Handshake::fails() const {
  try {
    (void)answer_.get();
    return false;
  } catch (...) {
    return true;
  }
}

bool Handshake::has_failed() const {
  return answer_.wait_for(std::chrono::seconds(0)) == std::future_status::ready && fails();
}

}  // namespace numcheck::run
