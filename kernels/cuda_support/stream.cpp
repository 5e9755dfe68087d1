#include "kernels/cuda_support/stream.hpp"

#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda_support {

Stream::Stream() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

Stream::~Stream() {
  cudaStreamDestroy(stream_);
}

Event::Event() {
  check(cudaEventCreate(&event_), "cudaEventCreate");
}

Event::~Event() {
  cudaEventDestroy(event_);
}

void StreamTimer::bracket(cudaStream_t stream, const std::function<void()>& enqueue) {
  check(cudaEventRecord(start_.get(), stream), "cudaEventRecord");
  enqueue();
  check(cudaEventRecord(stop_.get(), stream), "cudaEventRecord");
}

double StreamTimer::seconds() const {
  check(cudaEventSynchronize(stop_.get()), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace numcheck::kernels::cuda_support
