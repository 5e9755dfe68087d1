// What is expected of an output whose rows are made when they are compared, and are gone afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace numcheck::metric {

/// Some rows, dense; arrays as in CompareInput.
struct ExpectedRows {
  std::int64_t first = 0, count = 0;  ///< rows of all matrices
  std::span<const double> expected, unrounded;
  std::span<const float> magnitude, deviation, terms;
  std::shared_ptr<const void> owner;  ///< of the arrays
};

class RowSource {
 public:
  RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;
  virtual ~RowSource() = default;

  /// Of the pass over the whole output, which asks for every row once. Called by several threads at a time, as picked() is.
  [[nodiscard]] virtual ExpectedRows rows(std::int64_t first, std::int64_t count) const = 0;
  /// Some rows, wherever they are, one after the other, without `unrounded`.
  [[nodiscard]] virtual ExpectedRows picked(std::span<const std::int64_t> rows) const = 0;
  /// So many fit into the cache of a core.
  [[nodiscard]] virtual std::int64_t rows_at_a_time() const = 0;
  [[nodiscard]] virtual bool has_terms() const = 0;      ///< ExpectedRows::terms are there
  [[nodiscard]] virtual bool has_unrounded() const = 0;  ///< `unrounded` is, and not equal to `expected`
};

}  // namespace numcheck::metric
