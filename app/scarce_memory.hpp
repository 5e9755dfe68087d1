// What the process does where memory is scarce.
#pragma once

namespace numcheck::app {

/// Where the address space is limited (ulimit -v), every thread takes its memory from the same two heaps: the allocator
/// would reserve 64 MiB of it for each thread. And where there is no memory even for an exception's way (destructors
/// need some, too), the process ends with a message and ExitCode::environment instead of SIGABRT.
void prepare_for_scarce_memory() noexcept;

}  // namespace numcheck::app
