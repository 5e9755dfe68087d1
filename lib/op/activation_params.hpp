// What the forward and the backward activation have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "op/activation_kind.hpp"
#include "op/field.hpp"
#include "op/mxfp8.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `activation_fwd` and `activation_bwd`. With an MXFP8 output, and only then, the result is first
/// rounded to the format of the inputs, as TransformerEngine does; see mxfp8.hpp for the ports and the rule.
struct ActivationParams {
  std::string kind = "gelu";
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  double limit = 7;  ///< clamped_swiglu; used as the nearest FP32 number, like alpha and offset
  double alpha = 1.702;
  double offset = 1;
  std::string output = "default";    ///< default | fp32 | bf16 | fp16 | fp8_e4m3 | fp8_e5m2 | mxfp8_e4m3 | mxfp8_e5m2
  std::string layout = "rowwise";    ///< of an MXFP8 output: rowwise | columnwise | both
  std::string sigmoid = "accurate";  ///< of gradients, see has_fast_sigmoid(): accurate | fast

  template <class V>
  void describe(V& v) {
    constexpr double kMaxRows = 1 << 24;
    constexpr double kMaxHidden = 1 << 20;
    constexpr double kMaxLimit = 1e6;  // so that ordinary inputs do not overflow in between
    constexpr double kMaxAlpha = 1e3;
    v.choice("kind", "kind", kind, activation_names(),
             "the function; the last six multiply it by the second half of the row");
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxRows, .required = true, .doc = "rows"});
    v.integer("hidden", "h", hidden,
              {.minimum = 1, .maximum = kMaxHidden, .required = true, .doc = "columns of the forward output"});
    v.number("limit", "lim", limit, {.minimum = 0, .maximum = kMaxLimit, .doc = "clamp of clamped_swiglu"});
    v.number("alpha", "al", alpha,
             {.minimum = 0, .maximum = kMaxAlpha, .doc = "factor in the argument of clamped_swiglu's sigmoid"});
    v.number(
        "offset", "off", offset,
        {.minimum = -kMaxLimit, .maximum = kMaxLimit, .doc = "added to the clamped second half of clamped_swiglu"});
    v.choice("output", "out", output,
             {"default", "fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "mxfp8_e4m3", "mxfp8_e5m2"},
             "format of the output; default is the mode's", true);
    v.choice("layout", "lay", layout, {"rowwise", "columnwise", "both"},
             "whether the 32 elements of an MXFP8 output that share a scale lie in a row, in a column, or both", true);
    v.choice("sigmoid", "sg", sigmoid, {"accurate", "fast"},
             "gradients of swiglu and clamped_swiglu: whether their exponential may be the fast __expf");
  }
};

inline constexpr Mxfp8Names kMxfp8Y{"y", "y_scale_inv", "y_columnwise", "y_columnwise_scale_inv"};
inline constexpr Mxfp8Names kMxfp8Dx{"dx", "dx_scale_inv", "dx_columnwise", "dx_columnwise_scale_inv"};

/// Columns of the forward input: hidden, or 2 hidden for a gated kind.
[[nodiscard]] std::int64_t input_columns(const ActivationParams& params);

/// True for the kinds for whose gradients TransformerEngine has a path with s = __frcp_rn(1 + __expf(-t)). Where a
/// case's sigmoid is `fast`, its reference admits the error of that path; an accurate result also passes. Source:
/// TransformerEngine common/util/math.h, sigmoidf.
[[nodiscard]] bool has_fast_sigmoid(const ActivationKind& kind);

/// The mistake as a sentence, or nothing: limit, alpha, offset, a fast sigmoid or a layout where the kind or the output
/// has no use for it.
[[nodiscard]] std::vector<std::string> check_activation(std::string_view op, const ActivationParams& params);

/// The parameters `output` and `layout` of an op.
struct OutputChoice {
  std::string_view format;
  std::string_view layout;
};

/// Adds the ports of `output`, whose format is the chosen one: with one scale for the whole tensor, one per block, or none.
void add_activation_output(std::vector<Port>& ports, const Port& output, const OutputChoice& chosen,
                           std::string_view scale_name, std::string_view amax_name, const Mxfp8Names& names);

/// Integers are exact if the kind is rational; otherwise the reason why there is no exact leg.
[[nodiscard]] ExactPlan exact_activation(const ActivationParams& params, const Mode& mode);

/// Floating-point operations per output; a function with an exponential counts as twenty.
[[nodiscard]] double operations_of(const ActivationKind& kind, bool backward);

}  // namespace numcheck::op
