#include "op/op.hpp"

#include <algorithm>
#include <string>
#include <utility>

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

std::vector<Pass> passes_of(const Op& op, const Params& params) {
  return op.passes == nullptr ? std::vector<Pass>() : op.passes(params);
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

ExactPlan small_integers(const Params&, const Mode&) {
  constexpr std::int64_t kMost = 15;  // 4 significant bits: what E4M3 stores
  return {.max_first = kMost, .max_second = kMost, .stride = 1, .max_addend = kMost};
}

ExactPlan no_exact_leg(std::string reason) {
  return {.reason = std::move(reason)};
}

Port dense_port(std::string_view name, Role role, core::Dtype dtype, std::int64_t rows, std::int64_t cols,
                std::string_view doc) {
  Port port{.name = name, .role = role, .dtype = dtype, .rows = rows, .cols = cols, .doc = doc};
  port.ld = cols;
  port.batch_stride = rows * cols;
  return port;
}

Port scalar_port(std::string_view name, Role role, std::string_view of, std::string_view doc) {
  return {.name = name, .role = role, .dtype = core::Dtype::fp32, .of = of, .doc = doc};
}

const Port* find_port(std::span<const Port> ports, std::string_view name) noexcept {
  const auto found = std::ranges::find(ports, name, &Port::name);
  return found == ports.end() ? nullptr : &*found;
}

const Port& port_named(std::span<const Port> ports, std::string_view name) {
  const Port* found = find_port(ports, name);
  if (found == nullptr) {
    throw core::InternalError("no port is named " + std::string(name));
  }
  return *found;
}

}  // namespace numcheck::op
