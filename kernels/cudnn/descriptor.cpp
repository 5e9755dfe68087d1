#include "kernels/cudnn/descriptor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace numcheck::kernels::cudnn {

std::string_view kind_name(Kind kind) noexcept {
  switch (kind) {
    case Kind::pointwise:
      return "pointwise";
    case Kind::engine:
      return "engine";
    case Kind::engine_config:
      return "engine configuration";
    case Kind::heuristics:
      return "engine heuristics";
    case Kind::execution_plan:
      return "execution plan";
    case Kind::knob_choice:
      return "knob choice";
    case Kind::pointwise_operation:
      return "pointwise operation";
    case Kind::operation_graph:
      return "operation graph";
    case Kind::variant_pack:
      return "variant pack";
    case Kind::tensor:
      return "tensor";
    case Kind::matmul:
      return "matrix product";
    case Kind::matmul_operation:
      return "matrix product operation";
    case Kind::reduction:
      return "reduction";
    case Kind::reduction_operation:
      return "reduction operation";
    case Kind::reshape_operation:
      return "reshape operation";
    case Kind::rng:
      return "random numbers";
    case Kind::rng_operation:
      return "random numbers operation";
    case Kind::sdpa_forward_operation:
      return "forward attention";
    case Kind::norm_forward_operation:
      return "forward normalisation";
    case Kind::norm_backward_operation:
      return "backward normalisation";
    case Kind::device_properties:
      return "device properties";
  }
  return "descriptor";
}

Descriptor::Descriptor(const Library& library, Kind kind) : library_(&library), kind_(kind) {
  library_->check(library_->backend_create(kind, &handle_),
                  fmt::format("cudnnBackendCreateDescriptor ({})", kind_name(kind)));
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : library_(other.library_), kind_(other.kind_), handle_(std::exchange(other.handle_, nullptr)) {}

Descriptor::~Descriptor() {
  if (handle_ != nullptr) {
    library_->backend_destroy(handle_);
  }
}

void Descriptor::set_pointers(Attribute attribute, std::span<void* const> pointers) {
  set_elements(attribute, AttributeType::void_pointer, static_cast<std::int64_t>(pointers.size()), pointers.data());
}

void Descriptor::finalize() {
  library_->check(library_->backend_finalize(handle_), fmt::format("cudnnBackendFinalize ({})", kind_name(kind_)));
}

std::vector<Descriptor> Descriptor::descriptors(Attribute attribute, Kind kind, std::size_t limit) const {
  std::vector<Descriptor> made;
  std::vector<BackendHandle> handles;
  for (std::size_t i = 0; i < limit; ++i) {
    handles.push_back(made.emplace_back(*library_, kind).get());
  }
  const std::size_t count = get_elements(attribute, AttributeType::descriptor, limit, handles.data());
  while (made.size() > count) {
    made.pop_back();
  }
  return made;
}

void Descriptor::set_elements(Attribute attribute, AttributeType type, std::int64_t count, const void* values) {
  library_->check(library_->backend_set(handle_, attribute, type, count, values),
                  fmt::format("cudnnBackendSetAttribute ({}, {})", kind_name(kind_), static_cast<int>(attribute)));
}

std::size_t Descriptor::get_elements(Attribute attribute, AttributeType type, std::size_t limit, void* values) const {
  std::int64_t count = 0;
  library_->check(library_->backend_get(handle_, attribute, type, static_cast<std::int64_t>(limit), &count, values),
                  fmt::format("cudnnBackendGetAttribute ({}, {})", kind_name(kind_), static_cast<int>(attribute)));
  return std::min(static_cast<std::size_t>(count), limit);
}

}  // namespace numcheck::kernels::cudnn
