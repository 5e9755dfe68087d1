// Which format a tensor's numbers need, beside the one that it is stored in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "worker/execution.hpp"

namespace numcheck::prepare {
struct PreparedCase;
}

namespace numcheck::verdict {

/// What was seen of a tensor of floating-point numbers: up to 2^16 elements, in 16 pieces from its first to its last row.
struct PortFormat {
  std::string port;
  core::Dtype declared = core::Dtype::fp32;
  /// The shortest of fp8_e5m2, fp8_e4m3, bf16, fp16, tf32 and the declared format that holds all that was seen; nothing if that was
  /// zeros, infinities and NaN only.
  std::optional<core::Dtype> observed;
  std::uint64_t seen = 0;  ///< finite numbers that are not 0
  /// Share of these that BF16 does not hold: numbers with bits below its eight, and subnormal ones with bits below 2^-133. What FP32
  /// storage is for; 0 where FP32 parameters come from a BF16 checkpoint.
  double below_bf16 = 0;
};

/// Of all inputs and outputs of a run that hold floating-point numbers; not of scales, amaxes, masks and packed FP4 codes.
[[nodiscard]] std::vector<PortFormat> port_formats(const prepare::PreparedCase& prepared,
                                                   std::span<const worker::HostPort> host);

}  // namespace numcheck::verdict
