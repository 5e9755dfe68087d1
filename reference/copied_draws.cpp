#include "reference/copied_draws.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/parallel.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kTile = 16;  // side of the smallest squares

/// One round of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014). Two
/// zeros, places without draws, make a zero.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t next) {
  std::uint64_t z = hash * 0x9E3779B97F4A7C15U + next;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

/// -log10 of the chances of a draw.
struct Evidence {
  double dropped, kept;

  explicit Evidence(double probability)
      : dropped(-std::log10(probability)), kept(-std::log1p(-probability) / std::log(10.0)) {}
  [[nodiscard]] double most() const { return std::max(dropped, kept); }
  [[nodiscard]] double of(std::uint64_t drawn_bits, std::uint64_t dropped_bits) const {
    return dropped * std::popcount(dropped_bits) + kept * std::popcount(drawn_bits & ~dropped_bits);
  }
};

/// A region's draws and where they are, as a hash, and -log10 of the chance of these draws.
struct Node {
  std::uint64_t hash = 0;
  double evidence = 0;

  void append(const Node& next) {
    hash = mixed(hash, next.hash);
    evidence += next.evidence;
  }
};

/// Half as many, rounded up.
std::size_t halved(std::size_t n) {
  return (n + 1) / 2;
}

std::int64_t parts_of(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

/// Regions of one length that are compared with each other.
struct Family {
  bool of_tiles;
  std::int64_t length;
  double limit = 0;
  bool has_rows = false, has_columns = false;
};

struct Candidate {
  std::uint64_t hash;
  std::uint64_t place;  ///< twice that of the region's first draw, and one more for a column
  double evidence;
  [[nodiscard]] auto operator<=>(const Candidate&) const = default;
};

/// For every family, regions that would be beyond chance if they were copies.
using Candidates = std::vector<std::vector<Candidate>>;

class Search {
 public:
  Search(std::span<const DrawMatrix> matrices, double probability, double one_in)
      : matrices_(matrices),
        rows_(matrices.front().rows()),
        columns_(matrices.front().columns()),
        evidence_(probability),
        one_in_(one_in) {
    for (std::int64_t length = DrawMatrix::kBits; add_lines(length); length *= 2) {
    }
    for (std::int64_t length = kTile; std::min(rows_, columns_) > 1 && add_tiles(length); length *= 2) {
    }
  }

  [[nodiscard]] std::optional<CopiedDraws> worst() const {
    std::vector<Candidates> found(matrices_.size());
    core::parallel_for(found.size(), [&](std::size_t matrix) { found[matrix] = candidates_of(matrix); });
    std::vector<std::optional<CopiedDraws>> of_families(families_.size());
    core::parallel_for(families_.size(), [&](std::size_t n) { of_families[n] = worst_of(n, found); });
    std::optional<CopiedDraws> worst;
    for (const std::optional<CopiedDraws>& copy : of_families) {
      if (copy && (!worst || copy->measured * worst->limit > worst->measured * copy->limit)) {
        worst = copy;
      }
    }
    return worst;
  }

 private:
  /// False if none is longer.
  bool add_lines(std::int64_t length) {
    const auto matrices = static_cast<std::int64_t>(matrices_.size());
    Family family{.of_tiles = false, .length = length};
    family.has_rows = length < 2 * std::max(columns_, DrawMatrix::kBits) && may_tell(std::min(length, columns_), 1);
    family.has_columns = length < 2 * std::max(rows_, DrawMatrix::kBits) && may_tell(std::min(length, rows_), 1);
    const std::int64_t lines = (family.has_rows ? matrices * rows_ * parts_of(columns_, length) : 0) +
                               (family.has_columns ? matrices * columns_ * parts_of(rows_, length) : 0);
    add(family, lines, std::min(length, std::max(rows_, columns_)), evidence_.most());
    return length < std::max(rows_, columns_);
  }

  bool add_tiles(std::int64_t length) {
    const Family family{.of_tiles = true, .length = length};
    const std::int64_t tiles =
        static_cast<std::int64_t>(matrices_.size()) * parts_of(rows_, length) * parts_of(columns_, length);
    add(family, tiles, std::min(length, rows_) * std::min(length, columns_), 0);
    return length < std::max(rows_, columns_);
  }

  /// -log10 of the chance of what is seen by chance once in 10^5 one_in times at most, among so many pairs of a length.
  [[nodiscard]] double rarity(double pairs) const {
    constexpr double kRarer = 1e5;        // than other gates fail
    constexpr double kMostFamilies = 64;  // whose lengths are powers of two
    return std::log10(kRarer * one_in_ * kMostFamilies * pairs);
  }

  /// Whether so many draws, the less likely ones, would be beyond chance.
  [[nodiscard]] bool may_tell(std::int64_t draws, double pairs) const {
    return static_cast<double>(draws) * evidence_.most() > rarity(pairs);
  }

  /// Unless regions of so many draws are too small, or there are no two. `in_common`: evidence of a draw that two of
  /// them may have in common.
  void add(Family family, std::int64_t regions, std::int64_t draws, double in_common) {
    const double pairs = static_cast<double>(regions) * static_cast<double>(regions - 1) / 2;
    if (regions > 1 && may_tell(draws, pairs)) {
      family.limit = rarity(pairs) + in_common;
      families_.push_back(family);
    }
  }

  [[nodiscard]] std::uint64_t place(std::size_t matrix, std::int64_t row, std::int64_t column, bool is_column) const {
    const auto at = (static_cast<std::int64_t>(matrix) * rows_ + row) * columns_ + column;
    return static_cast<std::uint64_t>(at) * 2 + (is_column ? 1 : 0);
  }

  [[nodiscard]] Candidates candidates_of(std::size_t matrix) const {
    Candidates found(families_.size());
    const auto any = [this](auto member) { return std::ranges::any_of(families_, member); };
    if (any(&Family::has_rows)) {
      add_lines(found, matrix, matrices_[matrix], false);
    }
    if (any(&Family::has_columns)) {
      add_lines(found, matrix, matrices_[matrix].transposed(), true);
    }
    if (any(&Family::of_tiles)) {
      add_tiles(found, matrix);
    }
    return found;
  }

  /// Those of the rows of `lines`, which are the columns of a transposed matrix.
  void add_lines(Candidates& found, std::size_t matrix, const DrawMatrix& lines, bool are_columns) const {
    std::vector<Node> nodes;
    for (std::int64_t line = 0; line < lines.rows(); ++line) {
      nodes.resize(static_cast<std::size_t>(lines.words()));
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        const auto word = static_cast<std::int64_t>(n);
        const std::uint64_t drawn = lines.drawn(line, word), dropped = lines.dropped(line, word);
        nodes[n] = {mixed(mixed(0, drawn), dropped), evidence_.of(drawn, dropped)};
      }
      std::int64_t length = DrawMatrix::kBits;
      for (std::size_t f = 0; f < families_.size() && !families_[f].of_tiles; ++f) {
        if (!(are_columns ? families_[f].has_columns : families_[f].has_rows)) {
          continue;
        }
        for (; length < families_[f].length; length *= 2) {
          join(nodes);
        }
        for (std::size_t n = 0; n < nodes.size(); ++n) {
          if (nodes[n].evidence > families_[f].limit) {
            const std::int64_t first = static_cast<std::int64_t>(n) * length;
            found[f].push_back({nodes[n].hash,
                                are_columns ? place(matrix, first, line, true) : place(matrix, line, first, false),
                                nodes[n].evidence});
          }
        }
      }
    }
  }

  /// Neighbours become one.
  static void join(std::vector<Node>& nodes) {
    for (std::size_t n = 0; n < halved(nodes.size()); ++n) {
      Node node = nodes[2 * n];
      node.append(2 * n + 1 < nodes.size() ? nodes[2 * n + 1] : Node{});
      nodes[n] = node;
    }
    nodes.resize(halved(nodes.size()));
  }

  /// Nodes of squares, row by row.
  struct Grid {
    std::size_t down, across;
    std::vector<Node> nodes;

    Grid(std::size_t rows, std::size_t columns) : down(rows), across(columns), nodes(rows * columns) {}
    [[nodiscard]] Node at(std::size_t i, std::size_t j) const {
      return i < down && j < across ? nodes[i * across + j] : Node{};
    }
    [[nodiscard]] Grid joined() const {
      Grid larger(halved(down), halved(across));
      for (std::size_t n = 0; n < larger.nodes.size(); ++n) {
        const std::size_t i = n / larger.across * 2, j = n % larger.across * 2;
        for (const Node& node : {at(i, j), at(i, j + 1), at(i + 1, j), at(i + 1, j + 1)}) {
          larger.nodes[n].append(node);
        }
      }
      return larger;
    }
  };

  [[nodiscard]] Grid smallest_tiles(const DrawMatrix& matrix) const {
    constexpr std::int64_t kOfWord = DrawMatrix::kBits / kTile;
    constexpr std::uint64_t kBitsOfTile = (std::uint64_t{1} << kTile) - 1;
    Grid grid(static_cast<std::size_t>(parts_of(rows_, kTile)), static_cast<std::size_t>(parts_of(columns_, kTile)));
    for (std::size_t n = 0; n < grid.nodes.size(); ++n) {
      const auto first = static_cast<std::int64_t>(n / grid.across) * kTile;
      const auto tile = static_cast<std::int64_t>(n % grid.across);
      const auto shift = static_cast<unsigned>(tile % kOfWord * kTile);
      for (std::int64_t i = first; i < first + kTile; ++i) {
        const std::uint64_t drawn = matrix.drawn(i, tile / kOfWord) >> shift & kBitsOfTile;
        const std::uint64_t dropped = matrix.dropped(i, tile / kOfWord) >> shift & kBitsOfTile;
        grid.nodes[n].append({drawn << static_cast<unsigned>(kTile) | dropped, evidence_.of(drawn, dropped)});
      }
    }
    return grid;
  }

  void add_tiles(Candidates& found, std::size_t matrix) const {
    Grid grid = smallest_tiles(matrices_[matrix]);
    std::int64_t length = kTile;
    for (std::size_t f = 0; f < families_.size(); ++f) {
      if (!families_[f].of_tiles) {
        continue;
      }
      for (; length < families_[f].length; length *= 2) {
        grid = grid.joined();
      }
      for (std::size_t n = 0; n < grid.nodes.size(); ++n) {
        if (grid.nodes[n].evidence > families_[f].limit) {
          const auto i = static_cast<std::int64_t>(n / grid.across), j = static_cast<std::int64_t>(n % grid.across);
          found[f].push_back(
              {grid.nodes[n].hash, place(matrix, i * length, j * length, false), grid.nodes[n].evidence});
        }
      }
    }
  }

  [[nodiscard]] CopiedDraws worst_of(std::size_t family, std::span<const Candidates> found) const {
    std::vector<Candidate> all;
    for (const Candidates& of_matrix : found) {
      all.insert(all.end(), of_matrix[family].begin(), of_matrix[family].end());
    }
    std::ranges::sort(all);
    CopiedDraws worst{.limit = families_[family].limit};
    for (std::size_t n = 1; n < all.size(); ++n) {
      if (all[n].hash == all[n - 1].hash && all[n].evidence > worst.measured) {
        const CopiedDraws copy = compared(families_[family], all[n - 1], all[n]);
        worst = copy.measured > worst.measured ? copy : worst;
      }
    }
    return worst;
  }

  /// Bit by bit: equal hashes may be those of different draws.
  [[nodiscard]] CopiedDraws compared(const Family& family, const Candidate& a, const Candidate& b) const {
    CopiedDraws copy{.limit = family.limit, .first = region_of(family, a), .second = region_of(family, b)};
    const std::int64_t draws = family.of_tiles ? family.length * family.length : family.length;
    for (std::int64_t n = 0; n < draws; ++n) {
      const auto [drawn, dropped] = draw(copy.first, n);
      if (std::pair(drawn, dropped) != draw(copy.second, n)) {
        return {.limit = family.limit};
      }
      copy.draws += drawn ? 1 : 0;
    }
    copy.measured = b.evidence;
    return copy;
  }

  [[nodiscard]] DrawRegion region_of(const Family& family, const Candidate& candidate) const {
    using Shape = DrawRegion::Shape;
    const auto at = static_cast<std::int64_t>(candidate.place / 2);
    return {.shape = family.of_tiles            ? Shape::tile
                     : candidate.place % 2 == 1 ? Shape::column
                                                : Shape::row,
            .matrix = at / columns_ / rows_,
            .row = at / columns_ % rows_,
            .column = at % columns_,
            .length = family.length};
  }

  /// Whether there is a draw number n of a region, and whether it dropped.
  [[nodiscard]] std::pair<bool, bool> draw(const DrawRegion& region, std::int64_t n) const {
    using Shape = DrawRegion::Shape;
    const std::int64_t down = region.shape == Shape::row ? 0 : region.shape == Shape::column ? n : n / region.length;
    const std::int64_t row = region.row + down;
    const std::int64_t column = region.column + (region.shape == Shape::column ? 0 : n % region.length);
    const DrawMatrix& matrix = matrices_[static_cast<std::size_t>(region.matrix)];
    const std::int64_t word = column / DrawMatrix::kBits;
    const auto bit = static_cast<unsigned>(column % DrawMatrix::kBits);
    return {(matrix.drawn(row, word) >> bit & 1U) != 0, (matrix.dropped(row, word) >> bit & 1U) != 0};
  }

  std::span<const DrawMatrix> matrices_;
  std::int64_t rows_, columns_;
  Evidence evidence_;
  double one_in_;
  std::vector<Family> families_;  ///< lines before tiles, shorter ones first
};

}  // namespace

std::optional<CopiedDraws> copied_draws(std::span<const DrawMatrix> matrices, double probability, double one_in) {
  return matrices.empty() ? std::nullopt : Search(matrices, probability, one_in).worst();
}

}  // namespace numcheck::reference
