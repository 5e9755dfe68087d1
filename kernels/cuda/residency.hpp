// How many blocks of a kernel the device holds at once, for kernels whose blocks stay for the whole launch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numcheck::kernels::cuda {

/// Multiprocessors of the current device; 1 if the query fails.
[[nodiscard]] int multiprocessors();

/// How many blocks of `threads` threads, with that much dynamic shared memory, the current device holds at once; at
/// least one per multiprocessor. Queried once per kernel and shape: the query takes as long as a small launch.
[[nodiscard]] std::int64_t resident_blocks(const void* kernel, int threads, std::size_t shared_bytes);

}  // namespace numcheck::kernels::cuda
