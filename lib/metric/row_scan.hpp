// What a pass over rows that are not kept remembers of all expected values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "metric/compare.hpp"
#include "metric/repeats.hpp"

namespace numcheck::metric {

class RowScan {
 public:
  explicit RowScan(const CompareInput& input);

  /// Called once for all rows, by several threads.
  void add(const ExpectedRows& rows);

  // Of an output that is defined bit for bit, only varies() is known.
  [[nodiscard]] double largest() const noexcept { return largest_; }              ///< finite |y|
  [[nodiscard]] double largest_bound() const noexcept { return largest_bound_; }  ///< A
  [[nodiscard]] std::uint64_t zeros() const noexcept { return zeros_; }
  /// Whether two elements of one block are stored as different numbers.
  [[nodiscard]] bool varies() const noexcept { return varies_; }
  [[nodiscard]] double repeats() const { return magnitudes_.repeats(); }

 private:
  const CompareInput& input_;
  std::mutex mutex_;
  double largest_ = 0, largest_bound_ = 0;
  std::uint64_t zeros_ = 0;
  bool varies_ = false;
  SampledMagnitudes magnitudes_;
};

}  // namespace numcheck::metric
