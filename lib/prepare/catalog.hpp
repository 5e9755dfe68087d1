// The catalog as the rest of lib sees it: an op with its reference and its error model. `app/catalog.cpp` fills it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/device.hpp"
#include "model/error_model.hpp"
#include "op/op.hpp"
#include "op/reference.hpp"

namespace numcheck::prepare {

struct CatalogRow {
  const op::Op* op = nullptr;
  op::Reference reference;
  model::ErrorModelFn error_model = nullptr;  ///< tolerance::tracked_error_model for tracked references
  std::vector<std::string_view> backends;     ///< that have a binding for this op; the first is what `auto` means
};

using Catalog = std::span<const CatalogRow>;

/// The backend that computes the case: what `auto` means on that device, else the name itself, without version.
[[nodiscard]] std::string resolve_backend(const CatalogRow& row, const std::string& backend,
                                          const machine::Device& device);

[[nodiscard]] const CatalogRow* find_row(Catalog catalog, std::string_view op_name) noexcept;

}  // namespace numcheck::prepare
