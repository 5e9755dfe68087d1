// How a simulated device stores the results of an activation.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/sim/mxfp8_io.hpp"

namespace numcheck::kernels::sim {

/// In MXFP8 ports if the case has them, else in port `name`.
inline void write_activation(std::span<const PortMemory> ports, std::string_view name, const op::Mxfp8Names& names,
                             std::vector<float> results, const std::string& fault) {
  if (has_mxfp8(ports, names)) {
    write_mxfp8(ports, names, std::move(results), find_port(ports, "x")->port->dtype, fault);
  } else {
    write_floats(ports, name, results, fault);
  }
}

}  // namespace numcheck::kernels::sim
