// How one backend computes one op. Each backend derives its own type with its own entry points; app/catalog.cpp lists
// them, and nothing else knows which ops a backend computes.
#pragma once

#include <span>
#include <string_view>

#include "model/error_model.hpp"

namespace numcheck::kernels {

struct Binding {
  std::string_view backend;
  std::string_view op;
  model::MatrixArithmetic arithmetic = model::MatrixArithmetic::by_mode;  ///< of ops that multiply matrices
};

/// Bindings of all backends, in catalog order. They live as long as the process.
using Bindings = std::span<const Binding* const>;

/// The backend's binding of the op, or null.
[[nodiscard]] inline const Binding* find_binding(Bindings bindings, std::string_view backend,
                                                 std::string_view op) noexcept {
  for (const Binding* binding : bindings) {
    if (binding->backend == backend && binding->op == op) {
      return binding;
    }
  }
  return nullptr;
}

}  // namespace numcheck::kernels
