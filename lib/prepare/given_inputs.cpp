#include "prepare/given_inputs.hpp"

#include "core/error.hpp"

namespace numcheck::prepare {

SharedDoubles GivenInputs::of(const op::Port& port) const {
  const auto found = elements_.find(port.name);
  if (found == elements_.end()) {
    return nullptr;
  }
  if (found->second->size() != static_cast<std::size_t>(port.elements())) {
    throw core::InternalError("another number of elements is given for " + std::string(port.name));
  }
  return found->second;
}

std::span<const std::byte> GivenInputs::bits(const op::Port& port) const {
  const auto found = bits_.find(port.name);
  return found == bits_.end() ? std::span<const std::byte>() : found->second->span();
}

std::optional<float> GivenInputs::number(const op::Port& port) const {
  const SharedDoubles elements = of(port);
  return elements == nullptr ? std::nullopt : std::optional<float>(static_cast<float>((*elements)[0]));
}

float GivenInputs::factor(std::span<const op::Port> ports, const op::Port& operand) const {
  for (const op::Port& port : ports) {
    if (port.role == op::Role::scale && port.of == operand.name) {
      return number(port).value_or(1);
    }
  }
  return 1;
}

}  // namespace numcheck::prepare
