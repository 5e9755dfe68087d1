// Enough stack under `ulimit -s` and `ulimit -v`.
#pragma once

#include <functional>

namespace numcheck::app {

/// Runs the body and returns what it returns. Where the limit of the stack is too small for the program's own functions
/// (64 KiB are legal), or the address space may leave it no room to grow, on a thread with a stack of its own; threads
/// that start later get such stacks as well.
int with_enough_stack(const std::function<int()>& body);

}  // namespace numcheck::app
