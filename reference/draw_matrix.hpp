// Draws in rows and columns, as bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace numcheck::reference {

/// Draws in rows and columns. A place may have none.
class DrawMatrix {
 public:
  DrawMatrix(std::int64_t rows, std::int64_t columns);

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t columns() const noexcept { return columns_; }
  /// Of a row.
  [[nodiscard]] std::int64_t words() const noexcept { return words_; }

  void add(std::int64_t row, std::int64_t column, bool dropped) {
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(column % kBits);
    const auto word = static_cast<std::size_t>(row * words_ + column / kBits);
    drawn_[word] |= bit;
    dropped_[word] |= dropped ? bit : 0;
  }

  /// Columns [64 n, 64 n + 64) of a row, the first in the lowest bit: where there is a draw, and where it dropped. None
  /// of what is beyond the last row or column.
  [[nodiscard]] std::uint64_t drawn(std::int64_t row, std::int64_t n) const noexcept { return at(drawn_, row, n); }
  [[nodiscard]] std::uint64_t dropped(std::int64_t row, std::int64_t n) const noexcept { return at(dropped_, row, n); }

  [[nodiscard]] DrawMatrix transposed() const;

  static constexpr std::int64_t kBits = 64;

 private:
  [[nodiscard]] std::uint64_t at(const std::vector<std::uint64_t>& bits, std::int64_t row,
                                 std::int64_t n) const noexcept {
    return row < rows_ && n < words_ ? bits[static_cast<std::size_t>(row * words_ + n)] : 0;
  }

  std::int64_t rows_, columns_, words_;
  std::vector<std::uint64_t> drawn_, dropped_;
};

}  // namespace numcheck::reference
