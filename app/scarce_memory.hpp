// How the process behaves when memory is scarce.
#pragma once

namespace numcheck::app {

/// If the address space is limited (ulimit -v), all threads share two heaps, because the allocator would reserve 64 MiB
/// for each thread. If there is not even enough memory to unwind an exception (destructors need some, too), the process
/// ends with a message and ExitCode::environment instead of SIGABRT.
void prepare_for_scarce_memory() noexcept;

}  // namespace numcheck::app
