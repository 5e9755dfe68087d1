// How amaxes change over a series of steps: the courses of op::Fp8RecipeParams.
#pragma once

#include <cstdint>

#include "op/fp8_recipe.hpp"

namespace numcheck::reference {

class AmaxCourse {
 public:
  explicit AmaxCourse(const op::Fp8RecipeParams& p);

  /// What amaxes of that step have in common.
  [[nodiscard]] double level(std::int64_t step) const noexcept;
  /// The amax of a step: an FP32 number that is not below 0, or NaN. `element`: its number among all, which chooses with the
  /// draw what is special.
  [[nodiscard]] double amax(double draw, std::int64_t step, std::int64_t element) const noexcept;
  /// What the first step finds in a slot of the history of a tensor, by its number in the module.
  [[nodiscard]] double remembered(double draw, std::int64_t slot, std::int64_t tensor) const noexcept;
  /// Whether the scale of the first step is what an earlier series left.
  [[nodiscard]] bool keeps_scale() const noexcept { return kind_ == Kind::restart_with_state; }

 private:
  enum class Kind : std::uint8_t {
    steady,
    drifting,
    spiking,
    vanishing,
    special,
    restart_with_state,
    restart_without_state,
    calibration
  };
  [[nodiscard]] static Kind kind_of(const op::Fp8RecipeParams& p);

  Kind kind_;
  std::int64_t steps_;
};

}  // namespace numcheck::reference
