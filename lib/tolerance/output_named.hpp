// An output of a reference by its name.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// Throws core::InternalError if the reference has no such output.
[[nodiscard]] inline const op::OutputValues& output_named(const op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  if (found == values.outputs.end()) {
    throw core::InternalError("the reference has no output " + std::string(port));
  }
  return *found;
}

}  // namespace numcheck::tolerance
