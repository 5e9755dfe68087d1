// Delayed scaling: the FP8 scale of a tensor follows from its largest magnitudes (amaxes) in earlier steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/dtype.hpp"
#include "op/fp8_recipe.hpp"

namespace numcheck::data {

/// Which amax of the history the scale is for.
enum class AmaxChoice : std::uint8_t { largest, most_recent };

/// What an update does to a tensor whose most recent amax is 0, as is that of a module that did not run.
enum class IdleTensor : std::uint8_t {
  rolled,     ///< its history is rolled like any other
  left_alone  ///< history and scale stay
};

/// How scales follow from amaxes.
struct DelayedScaling {
  core::Dtype format = core::Dtype::fp8_e4m3;
  AmaxChoice choice = AmaxChoice::largest;
  std::int64_t margin = 0;
  IdleTensor idle = IdleTensor::rolled;

  /// What the amax is scaled to: RN32(largest number of the format * RN32(2^-margin)); 0 or infinite for extreme margins.
  [[nodiscard]] float target() const noexcept;

  /// RN32(target() / amax) if 0 < amax < infinity; else, and for NaN, `previous`. FLT_MAX instead of infinity.
  [[nodiscard]] float scale_for(float amax, float previous) const noexcept;
};

/// That of a case.
[[nodiscard]] DelayedScaling delayed_scaling_of(const op::Fp8RecipeParams& p);

/// The state of one tensor. Slot 0 of the history holds the amax of the step that is being computed, the last slot that of
/// the step before, and slot 1 the oldest.
/// Source: TransformerEngine common/recipe/delayed_scaling.cu.
class ScalingState {
 public:
  /// Precondition: the history is not empty.
  ScalingState(std::vector<float> history, float scale) : history_(std::move(history)), scale_(scale) {}

  /// Notes the amax of the step that is being computed.
  void record(float amax) noexcept { history_[0] = amax; }

  /// Ends a step: the scale becomes that for the chosen amax, NaN dropped, and the history is rolled: slot 1 is forgotten, the
  /// amax of this step becomes the most recent one, and slot 0 is cleared. The forgotten amax still counts in this update.
  /// `reduced`: the largest amax of this step on any rank, which replaces this rank's unless it is 0.
  void update(const DelayedScaling& rules, std::optional<float> reduced = std::nullopt) noexcept;

  [[nodiscard]] const std::vector<float>& history() const noexcept { return history_; }
  [[nodiscard]] float scale() const noexcept { return scale_; }

 private:
  std::vector<float> history_;
  float scale_;
};

}  // namespace numcheck::data
