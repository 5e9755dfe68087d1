// Streams and the timing of what runs on them.
#pragma once

#include <functional>

#include <cuda_runtime_api.h>

namespace numcheck::kernels::cuda_support {

/// A non-blocking CUDA stream of the current device.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A CUDA event with timing.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  [[nodiscard]] cudaEvent_t get() const noexcept { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Measures what is enqueued on a stream, with two events (resolution about 0.5 microseconds).
class StreamTimer {
 public:
  /// Marks the start and the end of what `enqueue` puts on the stream. Throws CudaError.
  void bracket(cudaStream_t stream, const std::function<void()>& enqueue);
  /// Device time between the marks, in seconds; waits for the end. Throws CudaError.
  [[nodiscard]] double seconds() const;

 private:
  Event start_;
  Event stop_;
};

}  // namespace numcheck::kernels::cuda_support
