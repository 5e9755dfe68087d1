// Uninitialised, 64-byte aligned arrays of trivial elements: large tensors are written once, so they are not zeroed.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace numcheck::core {

/// `bytes` of uninitialised memory, 64-byte aligned; large blocks lie on huge pages where the kernel has them, because
/// the first touch of a 128 MiB result in 4 KiB pages costs as much as a tenth of the product that fills it. Null for 0
/// bytes; throws std::bad_alloc.
[[nodiscard]] void* allocate_block(std::size_t bytes);
void release_block(void* block) noexcept;

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : data_(static_cast<T*>(allocate_block(bytes_of(size)))), size_(size) {}
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release_block(data_); }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] std::span<T> span() noexcept { return {data_, size_}; }
  [[nodiscard]] std::span<const T> span() const noexcept { return {data_, size_}; }

 private:
  /// More than any allocation where the product overflows.
  static std::size_t bytes_of(std::size_t size) noexcept {
    constexpr auto kMost = static_cast<std::size_t>(-1);
    return size > kMost / sizeof(T) ? kMost : size * sizeof(T);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace numcheck::core
