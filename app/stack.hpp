// Enough stack under `ulimit -s` and `ulimit -v`.
#pragma once

#include <functional>

namespace numcheck::app {

/// Runs the body and returns its result. If the limit on the stack is too small for the program's own functions (64 KiB
/// are legal), or the address space may leave it no room to grow, the body runs on a thread with a large enough stack;
/// threads that start later also get such stacks.
int with_enough_stack(const std::function<int()>& body);

}  // namespace numcheck::app
