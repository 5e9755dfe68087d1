// How much of an output of attention may be lost: elements of which nothing but their error is left.
#pragma once

#include <cstddef>
#include <span>

#include "model/error_model.hpp"
#include "op/attention_params.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// Collects, row by row, sum y^2 / V of the elements of a query or key. Where errors are as large as y itself (weights that
/// are all subnormal, gradients that cancel), a row may be 0 instead: e = -y in all its elements, a slope of -1. Correct
/// arithmetic has a mean square of e^2 / V of at most kappa^2 altogether, so that rows of more than 9 kappa^2 are not lost.
class LostRows {
 public:
  /// Of a row with that many elements.
  void add(double signal, std::size_t elements) noexcept;
  void add(const LostRows& rows) noexcept;
  /// The slope that all such rows lost give together: their share of sum y^2 / V.
  [[nodiscard]] double slope() const noexcept { return all_ == 0 ? 0 : weak_ / all_; }

 private:
  double weak_ = 0, all_ = 0;
};

/// y^2 / V of an element, the rounding of the request's output included, which holds y times its scale; 0 if it is not known.
[[nodiscard]] double signal_of(double y, float bound, float deviation, const model::ModelRequest& request);

}  // namespace numcheck::tolerance
