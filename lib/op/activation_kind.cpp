#include "op/activation_kind.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "core/error.hpp"

namespace numcheck::op {
namespace {

constexpr std::array kKinds = {
    ActivationKind{"gelu", Activation::gelu, false, false},
    ActivationKind{"gelu_erf", Activation::gelu_erf, false, false},
    ActivationKind{"silu", Activation::silu, false, false},
    ActivationKind{"relu", Activation::relu, false, true},
    ActivationKind{"qgelu", Activation::qgelu, false, false},
    ActivationKind{"srelu", Activation::srelu, false, true},
    ActivationKind{"geglu", Activation::gelu, true, false},
    ActivationKind{"swiglu", Activation::silu, true, false},
    ActivationKind{"reglu", Activation::relu, true, true},
    ActivationKind{"qgeglu", Activation::qgelu, true, false},
    ActivationKind{"sreglu", Activation::srelu, true, true},
    ActivationKind{"clamped_swiglu", Activation::clamped, true, false},
};

}  // namespace

const ActivationKind& activation_kind(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &ActivationKind::name);
  if (found == kKinds.end()) {
    throw core::InternalError("there is no activation \"" + std::string(name) + "\"");
  }
  return *found;
}

std::vector<std::string_view> activation_names() {
  std::vector<std::string_view> names;
  std::ranges::transform(kKinds, std::back_inserter(names), &ActivationKind::name);
  return names;
}

}  // namespace numcheck::op
