// The catalog as the rest of lib sees it: an op with its reference and its error model. `app/catalog.cpp` fills it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/error_model.hpp"
#include "op/op.hpp"
#include "op/reference.hpp"

namespace numcheck::prepare {

struct CatalogBackend {
  std::string_view name;
  model::MatrixArithmetic arithmetic = model::MatrixArithmetic::by_mode;
};

struct CatalogRow {
  const op::Op* op = nullptr;
  op::Reference reference;
  model::ErrorModelFn error_model = nullptr;  ///< tolerance::tracked_error_model for tracked references
  std::vector<CatalogBackend> backends;       ///< that have a binding for this op; the first is what `auto` means
};

using Catalog = std::span<const CatalogRow>;

/// How the backend of that name (without a version) multiplies; throws InternalError if the row does not have it.
[[nodiscard]] model::MatrixArithmetic arithmetic_of(const CatalogRow& row, std::string_view backend);

/// Names of the op's backends, in the catalog's order.
[[nodiscard]] std::vector<std::string_view> backend_names(const CatalogRow& row);

[[nodiscard]] const CatalogRow* find_row(Catalog catalog, std::string_view op_name) noexcept;

}  // namespace numcheck::prepare
