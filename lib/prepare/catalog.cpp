#include "prepare/catalog.hpp"

#include <algorithm>

#include "plan/backend_name.hpp"

namespace numcheck::prepare {

const CatalogRow* find_row(Catalog catalog, std::string_view op_name) noexcept {
  const auto found =
      std::ranges::find_if(catalog, [op_name](const CatalogRow& row) { return row.op->name == op_name; });
  return found == catalog.end() ? nullptr : &*found;
}

std::string resolve_backend(const CatalogRow& row, const std::string& backend, const machine::Device& device) {
  if (backend != "auto") {
    return std::string(plan::backend_of(backend));
  }
  return device.simulated || row.backends.empty() ? "sim" : std::string(row.backends.front());
}

}  // namespace numcheck::prepare
