// How many blocks of a kernel the device holds at once, for kernels whose blocks stay for the whole launch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numcheck::kernels::cuda {

/// Multiprocessors of the current device; 1 if it does not tell.
[[nodiscard]] int multiprocessors();

/// Blocks of `threads` threads and so much dynamic shared memory that the current device holds at once, at least one
/// per multiprocessor. Asked of the driver once per kernel and shape: the answer takes as long as a small launch.
[[nodiscard]] std::int64_t resident_blocks(const void* kernel, int threads, std::size_t shared_bytes);

}  // namespace numcheck::kernels::cuda
