#include <cmath>
#include <limits>
#include <utility>

#include "core/parallel.hpp"
#include "op/activation_params.hpp"
#include "reference/activation_declared.hpp"
#include "reference/activation_settle.hpp"
#include "reference/independent_rows.hpp"
#include "reference/mistakes.hpp"
#include "reference/mxfp8.hpp"
#include "reference/references.hpp"
#include "reference/repeated_terms.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

/// The gradients in a (or x) and in b of one element of the forward output.
class Backward {
 public:
  /// `copies`: all forward inputs are the same.
  Backward(const op::ActivationParams& p, TrackedOutput& dx, bool values_only, bool copies)
      : kind_(op::activation_kind(p.kind)),
        clamp_(clamp_of(p)),
        sigmoid_(sigmoid_of(p)),
        dx_(dx),
        values_only_(values_only),
        copies_(copies) {}

  /// dx of an op that is not gated, or the first half of a gated one.
  void first(std::size_t i, double dy, double a, double b) const {
    const op::Activation f = kind_.function;
    const double exact = exact_derivative(f, a, clamp_) * dy * (kind_.gated ? exact_factor(f, b, clamp_) : 1);
    if (is_open(a)) {
      return set_open(i, exact);
    }
    set(
        i, exact, tame(dy, a, b), [&] { return declared::derivative<Tracked>(f, a, clamp_, sigmoid_); },
        [&]<class S>(S) {
          const S gradient = declared::gradient<S>(f, a, dy, clamp_, sigmoid_);
          return kind_.gated ? gradient * declared::factor<S>(f, b, clamp_) : gradient;
        });
  }

  /// The second half of a gated op. Where b is clamped, the gradient is 0. TransformerEngine multiplies by that 0,
  /// others select it: where the product is not finite, the element is not checked.
  void second(std::size_t i, double dy, double a, double b) const {
    const op::Activation f = kind_.function;
    if (!factor_follows(f, b, clamp_)) {
      constexpr double kTooLarge = 0x1p126;
      const bool finite = std::fabs(dy * exact_value(f, a, clamp_)) < kTooLarge;
      const bool may_follow =
          sigmoid_ == Sigmoid::fast && std::isnan(b);  // b > limit is false for a NaN, and so is b <= limit
      const double yardstick = finite && !may_follow ? 0 : kUnknown;
      return dx_.set(i, 0, yardstick, yardstick);
    }
    if (is_open(a)) {
      return set_open(i, dy * exact_value(f, a, clamp_));
    }
    set(
        i, dy * exact_value(f, a, clamp_), tame(dy, a),
        [&] { return declared::value<Tracked>(f, a, clamp_, sigmoid_); },
        [&]<class S>(S) { return declared::constant<S>(dy) * declared::value<S>(f, a, clamp_, sigmoid_); });
  }

 private:
  using Sigmoid = declared::Sigmoid;
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  static Sigmoid sigmoid_of(const op::ActivationParams& p) {
    return p.sigmoid == "fast" ? Sigmoid::fast : Sigmoid::accurate;
  }

  /// TransformerEngine's path with the fast sigmoid also multiplies the factors in another order, so that different
  /// products overflow where `a` is not tame. Source: common/cast/mxfp8/gated_mxfp8.cuh, common/cast/fp8/gated_fp8.cuh.
  [[nodiscard]] bool is_open(double a) const { return sigmoid_ == Sigmoid::fast && !std::isnan(a) && !tame(a); }
  void set_open(std::size_t i, double exact) const { dx_.set(i, std::isfinite(exact) ? exact : 0, kUnknown, kUnknown); }

  /// `function`: the value or slope that the result is a multiple of; `declared`: the result, by type of scalar.
  template <class Function, class Result>
  void set(std::size_t i, double exact, bool is_tame, const Function& function, const Result& declared) const {
    Tracked dx = exact;
    if (!values_only_) {
      const Tracked result = declared(Tracked());
      dx = {exact, result.b, copies_ ? variance_of_copies(result) : result.v};
    }
    if (!is_tame) {
      dx = settle(exact, {values_only_ ? Tracked() : function(), dx, declared(0.0F)});
    }
    dx_.set(i, dx);
  }

  const op::ActivationKind& kind_;
  Clamp clamp_;
  Sigmoid sigmoid_;
  TrackedOutput& dx_;
  bool values_only_;
  bool copies_;
};

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::ActivationParams>(*request.params);
  const op::Operand& dy = op::operand_named(request.inputs, "dy");
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const auto hidden = static_cast<std::size_t>(p.hidden);
  const bool gated = op::activation_kind(p.kind).gated;
  TrackedOutput dx("dx", x.elements(), request.values_only);
  const Backward backward(p, dx, request.values_only, all_copies(x.data, x.elements()));
  core::parallel_chunks(dy.elements(), kElementsPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t a = gated ? i / hidden * 2 * hidden + i % hidden : i;
      const double b = gated ? x.data[a + hidden] : 0;
      backward.first(a, dy.data[i], x.data[a], b);
      if (gated) {
        backward.second(a + hidden, dy.data[i], x.data[a], b);
      }
    }
  });
  if (op::is_mxfp8(p.output)) {
    return mxfp8_outputs(std::move(dx).take(),
                         {op::kMxfp8Dx, p.rows, op::input_columns(p), op::mxfp8_codes(p.output), x.dtype, p.layout});
  }
  op::Values result;
  result.outputs.push_back(std::move(dx).take());
  return result;
}

}  // namespace

op::Reference activation_bwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.mistakes = &activation_bwd_mistakes;
  reference.on_rows = &on_activation_rows<op::ActivationParams>;
  reference.version = "activation_bwd-4";
  return reference;
}

}  // namespace numcheck::reference
