// How a simulated device stores the results of an activation.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/sim/mxfp8_io.hpp"

namespace numcheck::kernels::sim {

/// In MXFP8 ports if the case has them, first rounded to the format of the port `input`; else in port `name`.
inline void write_activation(std::span<const PortMemory> ports, std::string_view name, const op::Mxfp8Names& names,
                             std::vector<float> results, const std::string& fault, std::string_view input = "x") {
  if (has_mxfp8(ports, names)) {
    write_mxfp8(ports, names, std::move(results), port_memory(ports, input).port->dtype, fault);
  } else {
    write_floats(ports, name, results, fault);
  }
}

}  // namespace numcheck::kernels::sim
