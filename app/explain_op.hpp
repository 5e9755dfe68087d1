// What `explain` says about an op.
#pragma once

#include <string>

#include "op/op.hpp"
#include "prepare/catalog.hpp"

namespace numcheck::app {

/// Formula, ports, parameters, modes, backends, distributions and gates, as text.
[[nodiscard]] std::string explain_op(const prepare::CatalogRow& row, bool colour);

}  // namespace numcheck::app
