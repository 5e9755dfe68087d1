#include <utility>

#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "op/activation_params.hpp"
#include "reference/activation_declared.hpp"
#include "reference/activation_kernels.hpp"
#include "reference/activation_settle.hpp"
#include "reference/independent_rows.hpp"
#include "reference/mistakes.hpp"
#include "reference/mxfp8.hpp"
#include "reference/references.hpp"
#include "reference/repeated_terms.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {

const ActivationKernels& activation_kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(activation_kernels)();
}

namespace {

/// One element: f(a), or f(a) u(b).
class Forward {
 public:
  /// `copies`: all inputs are the same.
  Forward(const op::ActivationParams& p, bool copies, TrackedOutput& y)
      : kind_(op::activation_kind(p.kind)), clamp_(clamp_of(p)), copies_(copies), y_(y) {}

  /// Elements [begin, end) at once, if there is a kernel for that.
  [[nodiscard]] bool several(const double* x, std::size_t begin, std::size_t end) const {
    return !copies_ &&
           activation_kernels().values(kind_.function, x + begin, end - begin,
                                       {y_.value_at(begin), y_.magnitude_at(begin), y_.deviation_at(begin), nullptr});
  }

  void operator()(std::size_t i, double a, double b, bool values_only) const {
    const op::Activation f = kind_.function;
    const double exact = exact_value(f, a, clamp_) * (kind_.gated ? exact_factor(f, b, clamp_) : 1);
    Tracked y = exact;
    if (!values_only) {
      const Tracked function = declared::value<Tracked>(f, a, clamp_);
      const Tracked result = times_factor(function, b);
      y = {exact, result.b, copies_ ? variance_of_copies(result) : result.v};
      if (!tame(a, b)) {
        y = settle(exact, {function, y, plain(a, b)});
      }
    } else if (!tame(a, b)) {
      y = settle(exact, {{}, {}, plain(a, b)});
    }
    y_.set(i, y);
  }

 private:
  template <class S>
  [[nodiscard]] S times_factor(const S& value, double b) const {
    return kind_.gated ? value * declared::factor<S>(kind_.function, b, clamp_) : value;
  }

  [[nodiscard]] float plain(double a, double b) const {
    return times_factor(declared::value<float>(kind_.function, a, clamp_), b);
  }

  const op::ActivationKind& kind_;
  Clamp clamp_;
  bool copies_;
  TrackedOutput& y_;
};

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::ActivationParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const auto hidden = static_cast<std::size_t>(p.hidden);
  const auto rows = static_cast<std::size_t>(p.rows);
  const std::size_t gate = op::activation_kind(p.kind).gated ? hidden : 0;
  TrackedOutput y("y", rows * hidden, request.values_only);
  const Forward forward(p, all_copies(x.data, x.elements()), y);
  core::parallel_chunks(rows * hidden, kElementsPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    if (gate == 0 && forward.several(x.data, begin, end)) {
      return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const double* a = x.data + i / hidden * (hidden + gate) + i % hidden;
      forward(i, *a, gate == 0 ? 0 : a[gate], request.values_only);
    }
  });
  if (op::is_mxfp8(p.output)) {
    return mxfp8_outputs(std::move(y).take(),
                         {op::kMxfp8Y, p.rows, p.hidden, op::mxfp8_codes(p.output), x.dtype, p.layout});
  }
  op::Values result;
  result.outputs.push_back(std::move(y).take());
  return result;
}

}  // namespace

op::Reference activation_fwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.mistakes = &activation_fwd_mistakes;
  reference.on_rows = &on_activation_rows<op::ActivationParams>;
  reference.version = "activation_fwd-3";
  return reference;
}

}  // namespace numcheck::reference
