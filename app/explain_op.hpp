// What `explain` says about an op.
#pragma once

#include <string>

#include "op/op.hpp"
#include "prepare/catalog.hpp"

namespace numcheck::app {

/// Formula, ports, parameters, modes, backends, distributions and gates, as text.
[[nodiscard]] std::string explain_op(const prepare::CatalogRow& row, bool colour);

/// What the mode means for the op: the mode's own sentence speaks of products, which most ops do not have.
[[nodiscard]] std::string mode_doc(const op::Mode& mode, const op::Op& op);

}  // namespace numcheck::app
