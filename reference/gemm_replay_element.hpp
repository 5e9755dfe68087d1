// One element of a product, computed again with the roundings that a library declares.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "op/replay.hpp"
#include "reference/gemm_operands.hpp"

namespace numcheck::reference {

/// How slices, C and bias may be put together: what no library documents.
struct Scheme {
  enum class Reduction {
    none,      ///< the product is one sum
    stored,    ///< every slice is rounded; their sum is not
    in_place,  ///< the sum so far is, before each further slice is added
    running,   ///< both
  } reduction = Reduction::none;
  bool descending = false;    ///< the last slice comes first
  bool addend_first = false;  ///< C is there before the first slice
  bool bias_first = false;    ///< the bias is added to the first slice, which is the epilogue of its kernel
  bool scaled_late = false;   ///< slices are rounded before they are multiplied by alpha
  bool bias_in_product = false;

  [[nodiscard]] std::string text() const;
};

/// Every scheme in which a product with these roundings may be computed.
[[nodiscard]] std::vector<Scheme> schemes_of(const op::EarlyRounding& rounding, const GemmOperands& g);

/// A sum before it is rounded, and the second moment of the error that a device may have made in it.
struct Sum {
  double value = 0;
  double variance = 0;
};

/// What an element is made of.
struct ElementParts {
  std::vector<Sum> slices;  ///< sums of op(A) op(B), without any factor; one if the product is one sum
  Sum addend;               ///< beta C
  Sum bias;
};

/// factor value, which is exact if FP32 holds the factor and the product.
[[nodiscard]] Sum in_fp32(double factor, double value);

/// What a device may have stored: [low, high], usually one number, or something else with that probability, because a sum
/// was off and was rounded otherwise.
struct Prediction {
  double low = 0, high = 0;
  double otherwise = 0;
  /// How much further off than that it may be, because roundings before the end went otherwise, or were made in another order:
  /// 6 deviations of the difference of two such results, or as many steps as roundings may have gone otherwise, and two ulp.
  double astray = 0;
};

/// What the roundings before the end may do.
struct Chances {
  double otherwise = 0;  ///< probability that one of them goes otherwise; more than 1: several may
  double step = 0;       ///< distance of two numbers, the largest of all roundings
  double variance = 0;   ///< of the roundings, steps^2 / 12, and of what was rounded

  void scale(double factor) noexcept;
};

class ElementReplay {
 public:
  ElementReplay(const op::ReplayRequest& request, const GemmOperands& g);

  [[nodiscard]] Prediction predict(const ElementParts& parts, const Scheme& scheme) const;
  /// The same, with nothing rounded before the end.
  [[nodiscard]] Prediction strict(const ElementParts& parts) const;

 private:
  /// Rounds a sum; adds what another result may be.
  [[nodiscard]] Sum rounded(const Sum& sum, Chances& chances) const;
  [[nodiscard]] double round(double value) const;
  [[nodiscard]] Sum product(const ElementParts& parts, const Scheme& scheme, Chances& chances) const;
  [[nodiscard]] Sum stored_slices(const ElementParts& parts, const Scheme& scheme, Chances& chances) const;
  [[nodiscard]] double astray(const Sum& z, const Prediction& found, const Chances& chances) const;
  [[nodiscard]] Prediction finish(const Sum& z, double tanh_error, const Chances& chances) const;

  op::EarlyRounding rounding_;
  core::Dtype dtype_;
  double scale_;
  double product_scale_;
  Epilogue epilogue_;
};

}  // namespace numcheck::reference
