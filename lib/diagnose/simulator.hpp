// A device that is modelled on the host, and that can be made to compute wrongly in known ways.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "op/op.hpp"
#include "plan/case.hpp"

namespace numcheck::diagnose {

/// A way of computing wrongly.
struct SimulatedFault {
  std::string_view name;  ///< as run --inject takes it: "mask_off_by_one"
  std::string_view doc;   ///< "each query sees one key more"
};

/// A tensor of the case in memory that starts with its offset_bytes.
struct SimulatedPort {
  const op::Port* port = nullptr;
  std::byte* data = nullptr;
};

class Simulator {
 public:
  virtual ~Simulator() = default;
  /// The faults that can change this case. Faults of memory, and those of any size, are not among them.
  [[nodiscard]] virtual std::vector<SimulatedFault> faults(const plan::Case& c) const = 0;
  /// Computes the outputs from the inputs, with the fault. Outputs of other formats than the case has hold the same numbers,
  /// not rounded to its formats. False if the fault changes nothing in outputs of these formats. Throws core::Error if the
  /// device does not compute the case.
  [[nodiscard]] virtual bool run(const plan::Case& c, std::span<const SimulatedPort> ports,
                                 std::string_view fault) const = 0;
};

}  // namespace numcheck::diagnose
