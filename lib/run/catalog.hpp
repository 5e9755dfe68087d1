// The catalog as the rest of lib sees it: an op with its reference and its error model. `app/catalog.cpp` fills it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "op/op.hpp"
#include "op/reference.hpp"
#include "tolerance/error_model.hpp"

namespace numcheck::run {

struct CatalogRow {
  const op::Op* op = nullptr;
  op::Reference reference;
  tolerance::ErrorModelFn error_model = nullptr;
  std::vector<std::string_view> backends;  ///< that have a binding for this op
};

using Catalog = std::span<const CatalogRow>;

[[nodiscard]] const CatalogRow* find_row(Catalog catalog, std::string_view op_name) noexcept;

}  // namespace numcheck::run
