// What one output of a run is compared with: everything that metric::compare takes.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "metric/compare.hpp"
#include "model/error_model.hpp"
#include "verdict/compared_port.hpp"
#include "verdict/comparison.hpp"
#include "verdict/operand_lines.hpp"

namespace numcheck::verdict {

class Expectation {
 public:
  /// Bits need no yardsticks, and products of integers may have none yet; errors are reported in terms of them.
  enum class Yardsticks { where_needed, always };

  /// Arguments must outlive this object.
  Expectation(const EvaluationContext& context, const ComparedPort& compared, const model::ErrorModel& model,
              Yardsticks yardsticks = Yardsticks::where_needed);
  Expectation(const Expectation&) = delete;
  Expectation& operator=(const Expectation&) = delete;
  Expectation(Expectation&&) = delete;
  Expectation& operator=(Expectation&&) = delete;
  ~Expectation() = default;

  /// Refers to arrays of this object and of the group.
  [[nodiscard]] const metric::CompareInput& input() const noexcept { return input_; }
  /// Values of exact real arithmetic, if the op as implemented rounds or runs a pass in between; otherwise empty.
  [[nodiscard]] std::span<const double> ideal() const noexcept { return ideal_; }
  /// What the unrounded inputs give, if only another sample of it is known than of the rest; otherwise null.
  [[nodiscard]] const op::OutputValues* total_on_own_sample() const noexcept { return total_; }

 private:
  void expect(const EvaluationContext& context, const model::ErrorModel& model, Yardsticks yardsticks);
  /// A and S2 of products beside addends, and of what relu and gelu leave of sums.
  void narrow(const EvaluationContext& context, const model::ErrorModel& model);
  void take_errors(const EvaluationContext& context, const model::ErrorModel& model);
  /// `has_errors`: the yardsticks are the bounds and squares of the elements' errors.
  void reduce_to_amax(const model::ErrorModel& model);
  void expect_total(const EvaluationContext& context);

  const op::Port& port_;
  metric::CompareInput input_;
  std::span<const double> ideal_;
  const op::OutputValues* total_ = nullptr;
  op::Sample whole_;
  std::array<double, 1> own_value_{};  ///< of an amax port, which holds a single number
  std::array<float, 1> own_magnitude_{};
  std::array<float, 1> own_deviation_{};
  std::vector<float> bounds_, deviations_, terms_, row_slopes_;  ///< of a model with errors of its own
  std::optional<model::ErrorModel> own_model_;                   ///< for the narrowed A and S2
  OperandLines lines_;
  std::vector<op::OutputValues::Range> outside_;
  std::vector<std::byte> inside_;  ///< the output without elements that the op leaves to the implementation
};

}  // namespace numcheck::verdict
