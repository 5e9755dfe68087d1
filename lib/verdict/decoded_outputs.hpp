// A run's outputs as numbers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "op/reference.hpp"
#include "prepare/group.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Decoded, unscaled outputs, as the op's own statistics need them.
class DecodedOutputs {
 public:
  DecodedOutputs(const prepare::PreparedCase& prepared, std::span<const worker::HostPort> host);

  [[nodiscard]] std::span<const op::Delivered> outputs() const noexcept { return outputs_; }

 private:
  std::vector<core::Buffer<double>> decoded_;
  std::vector<std::vector<std::size_t>> unwritten_;
  std::vector<op::Delivered> outputs_;
};

}  // namespace numcheck::verdict
