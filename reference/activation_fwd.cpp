#include "reference/activation_fwd.hpp"

#include <utility>

#include "core/parallel.hpp"
#include "op/activation_params.hpp"
#include "reference/activation_declared.hpp"
#include "reference/activation_settle.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

/// One element: f(a), or f(a) u(b).
class Forward {
 public:
  Forward(const op::ActivationParams& p, TrackedOutput& y)
      : kind_(op::activation_kind(p.kind)), clamp_(clamp_of(p)), y_(y) {}

  void operator()(std::size_t i, double a, double b, bool values_only) const {
    const op::Activation f = kind_.function;
    const double exact = exact_value(f, a, clamp_) * (kind_.gated ? exact_factor(f, b, clamp_) : 1);
    Tracked tracked;
    if (!values_only) {
      tracked = declared_at<Tracked>(a, b);
    }
    const double y = tame(a, b) ? exact : with_specials(exact, tracked.b, declared_at<float>(a, b));
    y_.set(i, y, tracked.b, tracked.v);
  }

 private:
  template <class S>
  [[nodiscard]] S declared_at(double a, double b) const {
    const op::Activation f = kind_.function;
    const S value = declared::value<S>(f, a, clamp_);
    return kind_.gated ? value * declared::factor<S>(f, b, clamp_) : value;
  }

  const op::ActivationKind& kind_;
  Clamp clamp_;
  TrackedOutput& y_;
};

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::ActivationParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const auto hidden = static_cast<std::size_t>(p.hidden);
  const auto rows = static_cast<std::size_t>(p.rows);
  const std::size_t gate = op::activation_kind(p.kind).gated ? hidden : 0;
  TrackedOutput y("y", rows * hidden, request.values_only);
  const Forward forward(p, y);
  core::parallel_chunks(rows * hidden, kElementsPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const double* a = x.data + i / hidden * (hidden + gate) + i % hidden;
      forward(i, *a, gate == 0 ? 0 : a[gate], request.values_only);
    }
  });
  op::Values result;
  result.outputs.push_back(std::move(y).take());
  return result;
}

}  // namespace

op::Reference activation_fwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.version = "activation_fwd-1";
  return reference;
}

}  // namespace numcheck::reference
