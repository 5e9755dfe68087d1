#include "reference/draw_matrix.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace numcheck::reference {

DrawMatrix::DrawMatrix(std::int64_t rows, std::int64_t columns)
    : rows_(rows),
      columns_(columns),
      words_((columns + kBits - 1) / kBits),
      drawn_(static_cast<std::size_t>(rows * words_)),
      dropped_(static_cast<std::size_t>(rows * words_)) {}

/// Squares of 64 x 64 bits, by exchanging ever smaller quarters of them.
/// Source: Warren, "Hacker's Delight", 2nd edition, section 7-3.
DrawMatrix DrawMatrix::transposed() const {
  DrawMatrix result(columns_, rows_);
  std::array<std::uint64_t, kBits> square{};
  for (const auto& [from, to] : {std::pair{&drawn_, &result.drawn_}, {&dropped_, &result.dropped_}}) {
    for (std::int64_t i = 0; i < result.words_; ++i) {
      for (std::int64_t n = 0; n < words_; ++n) {
        for (std::int64_t row = 0; row < kBits; ++row) {
          square[static_cast<std::size_t>(row)] = at(*from, i * kBits + row, n);
        }
        std::uint64_t low = 0xFFFFFFFFU;
        for (std::size_t half = 32; half != 0; half /= 2, low ^= low << half) {
          for (std::size_t k = 0; k < square.size(); k = ((k | half) + 1) & ~half) {
            const std::uint64_t exchanged = (square[k] >> half ^ square[k | half]) & low;
            square[k] ^= exchanged << half;
            square[k | half] ^= exchanged;
          }
        }
        for (std::int64_t row = 0; row < std::min(kBits, columns_ - n * kBits); ++row) {
          (*to)[static_cast<std::size_t>((n * kBits + row) * result.words_ + i)] =
              square[static_cast<std::size_t>(row)];
        }
      }
    }
  }
  return result;
}

}  // namespace numcheck::reference
