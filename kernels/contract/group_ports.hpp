// The ports of one group of `grouped_gemm`, under their names in `gemm`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::kernels {

/// Owns the descriptions that its memory refers to.
class GroupPorts {
 public:
  GroupPorts(std::span<const PortMemory> all, std::size_t group) {
    std::vector<op::Port> ports;
    std::ranges::transform(all, std::back_inserter(ports), [](const PortMemory& memory) { return *memory.port; });
    ports_ = op::ports_of_group(ports, group);
    auto own = ports_.begin();
    for (const PortMemory& memory : all) {
      if (op::group_port(memory.port->name).group == group) {
        memory_.push_back({&*own++, memory.data});
      }
    }
  }

  GroupPorts(const GroupPorts&) = delete;
  GroupPorts(GroupPorts&&) noexcept = default;  // descriptions stay where they are
  GroupPorts& operator=(const GroupPorts&) = delete;
  GroupPorts& operator=(GroupPorts&&) = delete;
  ~GroupPorts() = default;

  [[nodiscard]] std::span<const PortMemory> memory() const noexcept { return memory_; }

 private:
  std::vector<op::Port> ports_;
  std::vector<PortMemory> memory_;
};

/// Those of all groups.
[[nodiscard]] inline std::vector<GroupPorts> groups_of(std::span<const PortMemory> all, std::size_t groups) {
  std::vector<GroupPorts> each;
  for (std::size_t group = 0; group < groups; ++group) {
    each.emplace_back(all, group);
  }
  return each;
}

}  // namespace numcheck::kernels
