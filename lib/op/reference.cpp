#include "op/reference.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace numcheck::op {

const Operand* find_operand(std::span<const Operand> operands, std::string_view name) noexcept {
  const auto found = std::ranges::find(operands, name, &Operand::port);
  return found == operands.end() ? nullptr : &*found;
}

const Operand& operand_named(std::span<const Operand> operands, std::string_view name) {
  const Operand* found = find_operand(operands, name);
  if (found == nullptr) {
    throw core::InternalError("the reference was given no operand " + std::string(name));
  }
  return *found;
}

}  // namespace numcheck::op
