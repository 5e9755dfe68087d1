// Stored outputs against those of the hardware's model, replayed bit for bit: a factor that all of them carry.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/error_model.hpp"
#include "tolerance/judge.hpp"

namespace numcheck::tolerance {

/// Scales are multiplied with each other, and the product with the sum.
inline constexpr double kReplayedFactors = 0x1p-23;

/// One output, in units of the unscaled output.
struct ReplayedOutput {
  double replayed = 0;       ///< what the model's arithmetic gives before it is rounded to the output's format
  double expected = 0;       ///< y
  double low = 0, high = 0;  ///< everything in between is rounded to what was stored
};

/// How many outputs a prediction p explains: for how many (1 + x) p is rounded to what was stored. Outputs whose replayed or
/// expected value is zero or not finite do not count.
struct ScaleFit {
  std::uint64_t count = 0;
  std::uint64_t numbers = 0;   ///< different ones that were stored, counted as far as it matters
  std::uint64_t unscaled = 0;  ///< by the replayed value, x = 0
  std::uint64_t scaled = 0;    ///< by the replayed value, with the x that explains most
  std::uint64_t expected = 0;  ///< by the expected value, with the x that explains most
  double low = 0, high = 0;    ///< between which x explains most, for the replayed value

  /// Whether the errors' random part is that of the replayed arithmetic, whatever factor comes on top: of what no factor
  /// makes of the exact result, at least 15 of 16 outputs are replayed. Other orders of summation have other rounding errors,
  /// and an output format that hides them, or that left only a few different numbers, identifies nothing.
  [[nodiscard]] bool identified() const noexcept;
};

[[nodiscard]] ScaleFit fit_scale(std::span<const ReplayedOutput> outputs);

/// Whether replaying them can identify anything, which their expected values tell: enough outputs are not explained by these.
[[nodiscard]] bool are_telling(std::span<const ReplayedOutput> outputs);

/// Gate G5: |x| of an identified replay, 0 if x = 0 explains as much but for a few outputs. Correct results have x = 0 but
/// for what the model says of rounded factors, and for the part of the truncation that the few outputs stand for that were
/// not replayed. Nothing if the replay is not identified or the model says nothing about factors.
[[nodiscard]] std::optional<Criterion> judge_scale(const ScaleFit& fit, const model::ErrorModel& model,
                                                   std::string_view schedule);

}  // namespace numcheck::tolerance
