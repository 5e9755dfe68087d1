#include "op/op.hpp"

#include <string>

#include "core/error.hpp"

namespace numcheck::op {

std::size_t Port::extent_bytes() const noexcept {
  if (elements() == 0) {
    return 0;
  }
  const std::int64_t last_row_end = (batch - 1) * batch_stride + (rows - 1) * ld + ld;
  return static_cast<std::size_t>(offset_bytes) +
         static_cast<std::size_t>(last_row_end) * static_cast<std::size_t>(core::dtype_info(dtype).storage_bytes);
}

std::optional<std::size_t> field_index(const Op& op, std::string_view name) {
  const std::vector<Field>& fields = op.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) {
      return i;
    }
  }
  return std::nullopt;
}

const Port& port_named(std::span<const Port> ports, std::string_view name) {
  for (const Port& port : ports) {
    if (port.name == name) {
      return port;
    }
  }
  throw core::InternalError("no port is named " + std::string(name));
}

}  // namespace numcheck::op
