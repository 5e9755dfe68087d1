// Where the tensors of a task lie in shared memory.
#pragma once

#include <vector>

#include "worker/arena.hpp"
#include "worker/protocol.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {

struct TaskLayout {
  std::vector<PortPlace> places;     ///< parallel to the task's ports
  std::vector<const Arena*> arenas;  ///< without duplicates
};

/// Throws core::InternalError unless every port lies inside its block, the blocks come from an ArenaPool, and the bytes
/// are enough for the port.
[[nodiscard]] TaskLayout layout_of(const Task& task);

}  // namespace numcheck::worker
