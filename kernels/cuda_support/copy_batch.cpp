#include "kernels/cuda_support/copy_batch.hpp"

#include <algorithm>
#include <functional>
#include <span>

#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda_support {
namespace {

bool overlap(const unsigned char* a, std::size_t a_bytes, const unsigned char* b, std::size_t b_bytes) {
  const std::less<> before;  // a total order, also of pointers into different blocks
  return a != nullptr && b != nullptr && before(a, b + b_bytes) && before(b, a + a_bytes);
}

/// Whether the order of two pieces matters.
bool depend(const CopyPiece& a, const CopyPiece& b) {
  return overlap(a.to, a.bytes, b.to, b.bytes) || overlap(a.to, a.bytes, b.from, b.bytes) ||
         overlap(a.from, a.bytes, b.to, b.bytes);
}

bool find_kernel() {
  const bool found = find_copy_kernel() == cudaSuccess;
  cudaGetLastError();  // a missing kernel is no error that a later call should find
  return found;
}

}  // namespace

CopyBatch::CopyBatch(cudaStream_t stream) : stream_(stream), has_kernel_(find_kernel()) {}

void CopyBatch::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (!has_kernel_) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
    return;
  }
  add({reinterpret_cast<unsigned char*>(to), reinterpret_cast<const unsigned char*>(from),
       static_cast<std::uint32_t>(bytes), 0});
}

void CopyBatch::fill(std::byte* to, std::uint8_t pattern, std::size_t bytes) {
  if (!has_kernel_) {
    check(cudaMemsetAsync(to, pattern, bytes, stream_), "cudaMemsetAsync");
    return;
  }
  add({reinterpret_cast<unsigned char*>(to), nullptr, static_cast<std::uint32_t>(bytes), pattern});
}

void CopyBatch::add(const CopyPiece& piece) {
  if (piece.bytes == 0) {
    return;
  }
  const std::span<const CopyPiece> waiting(pieces_.piece, static_cast<std::size_t>(pieces_.count));
  if (pieces_.count == kMaxCopyPieces ||
      std::ranges::any_of(waiting, [&piece](const CopyPiece& other) { return depend(piece, other); })) {
    flush();
  }
  pieces_.piece[pieces_.count++] = piece;
}

void CopyBatch::flush() {
  if (pieces_.count == 0) {
    return;
  }
  const cudaError_t status = launch_copies(pieces_, stream_);
  pieces_.count = 0;
  check(status, "te-numcheck's copy kernel");
}

}  // namespace numcheck::kernels::cuda_support
