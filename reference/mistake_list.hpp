// How the tables of mistakes in formulas are written.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "op/field.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

using Instead = op::Values (*)(const op::ReferenceRequest&);

/// Wrong results that no other parameters give.
[[nodiscard]] op::Values activation_of_swapped_halves(const op::ReferenceRequest& request);
[[nodiscard]] op::Values gradients_of_swapped_halves(const op::ReferenceRequest& request);
[[nodiscard]] op::Values attention_without_sink(const op::ReferenceRequest& request);
/// FP8: v is multiplied by the scale of k.
[[nodiscard]] op::Values attention_with_scale_of_keys(const op::ReferenceRequest& request);
[[nodiscard]] op::Values rotated_back(const op::ReferenceRequest& request);
[[nodiscard]] op::Values mean_of_experts(const op::ReferenceRequest& request);

/// Those of `quantize` for a block recipe, and for nvfp4.
[[nodiscard]] std::vector<op::Mistake> block_quantize_mistakes(const op::Params& params);
[[nodiscard]] std::vector<op::Mistake> nvfp4_quantize_mistakes(const op::Params& params);

/// Collects mistakes: other parameters, or other code.
template <class P>
class Mistakes {
 public:
  explicit Mistakes(const op::Params& params) : p(op::from_params<P>(params)) {}

  template <class Change>
  void add(std::string name, std::string text, Change change, double (*then)(double) = nullptr) {
    P wrong = p;
    change(wrong);
    all_.push_back({std::move(name), std::move(text), op::to_params(wrong), then});
  }
  /// `instead` gives the wrong result.
  void add_instead(std::string name, std::string text, Instead instead) {
    all_.push_back({std::move(name), std::move(text), op::to_params(p), nullptr, instead});
  }
  /// The same of an output that all rows have in common.
  void add_of_all_rows(std::string name, std::string text, Instead instead) {
    add_instead(std::move(name), std::move(text), instead);
    all_.back().of_all_rows = true;
  }
  [[nodiscard]] std::vector<op::Mistake> take() { return std::move(all_); }

  const P p;

 private:
  std::vector<op::Mistake> all_;
};

/// The functions that are taken for the activation that `member` names.
template <class P>
void add_other_functions(Mistakes<P>& mistakes, std::string P::* member) {
  struct Other {
    const char *kind, *taken, *name, *text;
  };
  for (const Other& other : {Other{"gelu", "gelu_erf", "gelu_erf", "gelu by tanh from gelu by erf"},
                             Other{"gelu_erf", "gelu", "gelu_tanh", "gelu by erf from gelu by tanh"},
                             Other{"qgelu", "silu", "silu", "x sigmoid(1.702 x) from x sigmoid(x)"},
                             Other{"silu", "qgelu", "qgelu", "x sigmoid(x) from x sigmoid(1.702 x)"},
                             Other{"relu", "srelu", "srelu", "max(x, 0) from its square"},
                             Other{"srelu", "relu", "relu", "the square of max(x, 0) from max(x, 0)"},
                             Other{"reglu", "sreglu", "sreglu", "max(x, 0) from its square"},
                             Other{"sreglu", "reglu", "reglu", "the square of max(x, 0) from max(x, 0)"},
                             Other{"swiglu", "qgeglu", "qgeglu", "x sigmoid(x) from x sigmoid(1.702 x)"},
                             Other{"qgeglu", "swiglu", "swiglu", "x sigmoid(1.702 x) from x sigmoid(x)"}}) {
    if (mistakes.p.*member == other.kind) {
      mistakes.add(other.name, other.text, [&](P& p) { p.*member = other.taken; });
    }
  }
}

/// A window along the diagonal from the top left corner instead, if a window along the other can be the same.
template <class P>
void add_other_corner(Mistakes<P>& mistakes) {
  const P& declared = mistakes.p;
  const std::int64_t diagonal = declared.diagonal(declared.sq, declared.sk);
  const auto moved = [](std::int64_t width, std::int64_t by) { return width < 0 ? width : width + by; };
  const std::int64_t left = moved(declared.window_left, diagonal), right = moved(declared.window_right, -diagonal);
  if (diagonal != 0 && !declared.has_lengths() && left >= -1 && right >= -1 &&
      (left < 0) == (declared.window_left < 0) && (right < 0) == (declared.window_right < 0)) {
    mistakes.add("window_from_top_left", "a window from the bottom right corner from one from the top left",
                 [left, right](P& p) {
                   p.window_left = left;
                   p.window_right = right;
                 });
  }
}

/// Those of both passes of attention; `without_sink`: what it yields if keys have the denominator to themselves. The backward
/// pass reads that from lse, so that it has none.
template <class P>
void add_attention(Mistakes<P>& mistakes, Instead without_sink = nullptr) {
  const double factor = mistakes.p.factor();
  if (factor != 1) {
    mistakes.add("scale_missing", "the scale of the scores from 1", [](P& p) { p.scale = 1; });
  }
  mistakes.add("scale_1_01", "the scale of the scores from 1.01 times it", [factor](P& p) { p.scale = 1.01 * factor; });
  if (mistakes.p.is_causal()) {
    mistakes.add("mask_missing", "the causal mask from none",
                 [](P& p) { p.mask = p.has_lengths() ? "padding" : "none"; });
  }
  if (mistakes.p.window_left >= 0 || mistakes.p.window_right >= 0) {
    mistakes.add("window_missing", "the window from none", [](P& p) { p.window_left = p.window_right = -1; });
    add_other_corner(mistakes);
  }
  if (mistakes.p.bias != "none") {
    mistakes.add("bias_missing", "the bias of the scores from none", [](P& p) { p.bias = "none"; });
  }
  if (mistakes.p.softcap != 0) {
    mistakes.add("softcap_missing", "the cap of the scores from none", [](P& p) { p.softcap = 0; });
  }
  if (mistakes.p.softmax != "vanilla" && without_sink != nullptr) {
    mistakes.add_instead("sink_missing", "the sink from none", without_sink);
  }
}

}  // namespace numcheck::reference
