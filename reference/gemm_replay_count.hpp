// Of how many elements that were computed again the bits fit, and whether that shows anything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "op/replay.hpp"
#include "reference/gemm_replay_element.hpp"
#include "reference/matmul.hpp"

namespace numcheck::reference {

/// What came of an element, or of many.
struct Count {
  double elements = 0;
  double stored = 0;            ///< with those that others repeat
  double other = 0;             ///< have other bits than predicted
  double expected = 0;          ///< sum of the probabilities of that
  double odd = 0;               ///< have other bits although that is improbable
  double odd_expected = 0;      ///< sum of the probabilities of those of which it is
  double telling = 0;           ///< would have other bits if they were rounded once
  double told = 0;              ///< of these, those with the bits that were predicted
  double astray = 0;            ///< are further off than Prediction::astray allows
  double single = 0;            ///< one number is predicted, not an interval
  std::uint64_t signature = 0;  ///< equal for ways that predict the same

  void add(const Count& more) noexcept;
  /// Elements that speak for the way, less those that speak against it.
  [[nodiscard]] double lead() const noexcept { return elements - 2 * other; }
};

/// Of one element, with the bits that were predicted for it and if it were rounded once; nothing (no elements) if it is not
/// finite.
[[nodiscard]] Count count_of(std::int64_t index, double got, const Prediction& once, const Prediction& more);

/// Of ways, how many predict different bits.
[[nodiscard]] double distinct(const std::vector<Count>& ways);

/// Whether the count shows the roundings, where so many ways of computing them were tried: see gemm_replay.hpp.
[[nodiscard]] bool shows(const Count& count, const op::EarlyRounding& rounding, double ways);

/// Whether more of the elements have other bits than the errors of their sums explain, whatever is added in another order.
[[nodiscard]] bool beyond_chance(const Count& count);

/// Whether nothing speaks against the roundings but what chance leaves, and nothing could speak for them beyond it: not even
/// if all telling elements had the bits that were predicted.
[[nodiscard]] bool too_few(const Count& count, const op::EarlyRounding& rounding, double ways);

/// Counts of the rows, columns, 64 x 64 tiles and matrices of D.
class GroupCounts {
 public:
  explicit GroupCounts(const ProductShape& shape);

  void add(std::int64_t index, const Count& count);
  /// "row 12 (14 of 32)": a group of which so many have other bits that chance would not have done it once in 10^8 groups,
  /// and if there are several the one of which that is least probable; empty if there is none.
  [[nodiscard]] std::string uneven() const;

 private:
  struct Groups {
    const char* name;
    std::vector<Count> counts;
  };
  ProductShape shape_;
  std::int64_t tiles_across_;
  std::vector<Groups> groups_;
};

}  // namespace numcheck::reference
