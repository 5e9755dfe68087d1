// Chosen outputs of a product computed again, bit for bit, with the arithmetic of the device that ran.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "model/error_model.hpp"
#include "model/line_scales.hpp"
#include "model/operand_image.hpp"
#include "model/schedule.hpp"
#include "op/grouped_gemm.hpp"
#include "verdict/comparison.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Slices of k that libraries cut unasked.
inline constexpr std::array kReplayedSplits = {1, 2, 3, 4, 5, 6, 7, 8};

/// What may come between sums and an output besides a factor.
enum class Beyond : std::uint8_t {
  nothing,
  addends,  ///< C and bias, and relu, which keeps what is above zero
};

/// The product behind an output, if nothing else comes between its sums and the output, and the arithmetic is that of one
/// instruction.
[[nodiscard]] std::optional<op::Product> replayable_product(const EvaluationContext& context,
                                                            const worker::RunReport& run,
                                                            const model::ErrorModel& model, std::string_view output,
                                                            Beyond beyond = Beyond::nothing);

/// The schedule of this run's products if k is cut into so many slices.
[[nodiscard]] model::Schedule replayed_schedule(const EvaluationContext& context, const op::GemmParams& params,
                                                int split_k);

/// Sums of one matrix of the batch, where some of its rows meet some of its columns.
class ProductReplay {
 public:
  struct Place {
    std::int64_t batch = 0;
    std::vector<std::int64_t> rows, columns;
  };
  ProductReplay(const EvaluationContext& context, const worker::RunReport& run, const op::Product& product,
                Place place);

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] std::size_t size() const noexcept { return place_.rows.size() * place_.columns.size(); }
  /// What the device's arithmetic gives before it is rounded to the output's format, row by row, in units of the unscaled
  /// output.
  [[nodiscard]] std::vector<double> replayed(const model::Schedule& schedule) const;
  /// The exact values of row `i` of the place, without addends.
  [[nodiscard]] std::vector<double> exact_row(std::size_t i) const;
  /// What is added to them, and the sum of the magnitudes of that.
  struct Addend {
    double sum = 0, magnitude = 0;
  };
  [[nodiscard]] std::vector<Addend> addends_of_row(std::size_t i) const;

 private:
  void load_operands(const EvaluationContext& context, const worker::RunReport& run, const op::Product& product);

  op::GemmParams p_;
  Place place_;
  const double *c_ = nullptr, *bias_ = nullptr;  ///< null: there is none
  std::int32_t a_emin_, b_emin_;
  core::Buffer<float> a_, b_;
  model::LineScales scales_;
  float factor_ = 1;
};

}  // namespace numcheck::verdict
