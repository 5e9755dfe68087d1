#include "worker/task_layout.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::worker {
namespace {

[[noreturn]] void reject(const Task& task, std::size_t index) {
  throw core::InternalError(fmt::format("port {} of {} does not lie in a block of this pool", index, task.c->id));
}

}  // namespace

TaskLayout layout_of(const Task& task) {
  if (task.c == nullptr || task.blocks.size() != task.ports.size()) {
    throw core::InternalError("a task needs a case and one block per port");
  }
  TaskLayout layout;
  for (std::size_t i = 0; i < task.ports.size(); ++i) {
    const HostPort& port = task.ports[i];
    auto* block = dynamic_cast<ArenaBlock*>(task.blocks[i].get());
    if (block == nullptr || port.port == nullptr || port.bytes.size() < port.port->extent_bytes()) {
      reject(task, i);
    }
    const BlockPlace& place = block->place();
    if (port.bytes.empty() || place.arena == nullptr) {
      if (!port.bytes.empty()) {
        reject(task, i);
      }
      layout.places.emplace_back();
      continue;
    }
    const std::span<std::byte> whole = block->bytes();
    const std::byte* first = port.bytes.data();
    if (first < whole.data() || first + port.bytes.size() > whole.data() + whole.size()) {
      reject(task, i);
    }
    layout.places.push_back(
        {place.arena->id, place.offset + static_cast<std::size_t>(first - whole.data()), port.bytes.size()});
    if (std::find(layout.arenas.begin(), layout.arenas.end(), place.arena) == layout.arenas.end()) {
      layout.arenas.push_back(place.arena);
    }
  }
  return layout;
}

}  // namespace numcheck::worker
