// How the process takes memory, and how it behaves when that is scarce.
#pragma once

namespace numcheck::app {

/// If the address space is limited (ulimit -v), all threads share two heaps, because the allocator would reserve 64 MiB
/// for each thread. If there is not even enough memory to unwind an exception (destructors need some, too), the process
/// ends with a message and ExitCode::environment instead of SIGABRT.
void prepare_for_scarce_memory() noexcept;

/// Blocks of up to 4 MiB that are released stay with the process, up to 64 MiB of each heap: references of a few rows take and
/// release the same ones again and again, and pages of the kernel's must be cleared each time.
void keep_freed_memory() noexcept;

}  // namespace numcheck::app
