#include "run/catalog.hpp"

#include <algorithm>

namespace numcheck::run {

const CatalogRow* find_row(Catalog catalog, std::string_view op_name) noexcept {
  const auto found =
      std::ranges::find_if(catalog, [op_name](const CatalogRow& row) { return row.op->name == op_name; });
  return found == catalog.end() ? nullptr : &*found;
}

}  // namespace numcheck::run
