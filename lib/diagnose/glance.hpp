// A look at what a hypothesis predicts, before it is judged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "diagnose/explanation.hpp"
#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {

/// Error models cost more than results, and attention's several times as much. A hypothesis whose results are not nearer to the
/// output than those that are expected anyway, neither in their squared distance nor in their bits, needs no error model: it could
/// only allow for the errors.
class Glance {
 public:
  /// Of the output as expected, if the op is a costly one, or `at_any`. The evidence must outlive this object.
  Glance(const Evidence& evidence, bool at_any);

  /// What is known of a hypothesis that explains nothing; nothing if it has to be judged.
  [[nodiscard]] std::optional<Explanation> dismissed(const Hypothesis& hypothesis, const Declared& declared,
                                                     double flops) const;

 private:
  struct Distance {
    double square = 0;         ///< mean of (d - y)^2
    double cosine = 0;         ///< of the angle between d and y
    std::uint64_t equal = 0;   ///< elements that are the nearest number to y
    std::uint64_t broken = 0;  ///< elements where only one of d and y is finite
  };
  [[nodiscard]] Distance distance_to(std::span<const double> y) const;

  const Evidence& evidence_;
  op::Port port_;
  double scale_ = 1;  ///< that codes of the output were multiplied by
  bool looks_ = false;
  Distance expected_;  ///< only if it looks
};

}  // namespace numcheck::diagnose
