#include "kernels/cuda/residency.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include <cuda_runtime_api.h>

namespace numcheck::kernels::cuda {
namespace {

int current_device() {
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess ? device : 0;
}

/// Values that are computed once per key.
template <class Key, class Value>
class Cache {
 public:
  template <class Find>
  Value operator()(const Key& key, const Find& find) {
    const std::lock_guard lock(mutex_);
    const auto known = values_.find(key);
    return known != values_.end() ? known->second : values_.emplace(key, find()).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<Key, Value> values_;
};

}  // namespace

int multiprocessors() {
  static Cache<int, int> known;
  const int device = current_device();
  return known(device, [device] {
    int count = 0;
    return cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess ? count : 1;
  });
}

std::int64_t resident_blocks(const void* kernel, int threads, std::size_t shared_bytes) {
  static Cache<std::tuple<int, const void*, int, std::size_t>, int> known;
  const int blocks = known({current_device(), kernel, threads, shared_bytes}, [&] {
    int found = 0;
    const auto status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found, kernel, threads, shared_bytes);
    return status == cudaSuccess ? std::max(found, 1) : 1;
  });
  return std::int64_t{multiprocessors()} * blocks;
}

}  // namespace numcheck::kernels::cuda
