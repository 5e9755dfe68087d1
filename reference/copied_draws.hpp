// Whether random draws are copies of others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reference/chance.hpp"
#include "reference/draw_matrix.hpp"

namespace numcheck::reference {

/// Part of a row, of a column, or a square, of one of several matrices; its first row and column, and its length.
struct DrawRegion {
  enum class Shape : std::uint8_t { row, column, tile };
  Shape shape = Shape::row;
  std::int64_t matrix = 0, row = 0, column = 0, length = 0;
};

/// What speaks most for a copy: regions with draws in the same places, all of which dropped or kept alike.
struct CopiedDraws {
  double measured = 0;  ///< -log10 of the chance that independent draws are those of a region; 0 if there is no copy
  double limit = 0;     ///< which independent draws exceed once in 10^5 `one_in` times at most
  DrawRegion first, second;
  std::int64_t draws = 0;  ///< of each region
};

/// Compared are parts of rows and columns of 64, 128, 256 ... places, each with all others of that length, and squares
/// of 16, 32, 64 ... places a side, all of which begin at multiples of their length; the longest are whole rows,
/// columns and matrices. Takes a time that is proportional to the number of places. Nothing where no two regions have
/// draws enough to tell a copy from chance.
///
/// The limit: the draws of two independent regions are the same and have a chance P(x) below e with a probability of
/// sum P(x)^2 over all such x, which is less than e. So log10 of (10^5 one_in pairs) is exceeded as rarely as it says,
/// where pairs are those of all lengths; 10^5, because copies that matter are beyond all doubt. A row and a column of
/// one matrix have a draw in common, which does not count.
///
/// Precondition: matrices are of one size, and 0 < probability < 1.
[[nodiscard]] std::optional<CopiedDraws> copied_draws(std::span<const DrawMatrix> matrices, double probability,
                                                      double one_in = kGateOneIn);

}  // namespace numcheck::reference
