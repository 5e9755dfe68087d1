#include "prepare/catalog.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::prepare {

const CatalogRow* find_row(Catalog catalog, std::string_view op_name) noexcept {
  const auto found =
      std::ranges::find_if(catalog, [op_name](const CatalogRow& row) { return row.op->name == op_name; });
  return found == catalog.end() ? nullptr : &*found;
}

model::MatrixArithmetic arithmetic_of(const CatalogRow& row, std::string_view backend) {
  const auto found = std::ranges::find(row.backends, backend, &CatalogBackend::name);
  if (found == row.backends.end()) {
    throw core::InternalError(fmt::format("{} has no backend {}", row.op->name, backend));
  }
  return found->arithmetic;
}

std::vector<std::string_view> backend_names(const CatalogRow& row) {
  std::vector<std::string_view> names;
  std::ranges::transform(row.backends, std::back_inserter(names), &CatalogBackend::name);
  return names;
}

}  // namespace numcheck::prepare
