#include "report/views/html_shape.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace numcheck::report::views {
namespace {

bool is_wrong(char letter) {
  return letter > 'i' || letter == '!' || letter == '#';
}

/// Mean errors as numbers from -12 to 12; unknown ones count as 0.
std::vector<std::vector<double>> levels_of(const std::vector<std::string>& mean) {
  std::vector<std::vector<double>> levels;
  for (const std::string& row : mean) {
    levels.emplace_back();
    for (const char letter : row) {
      levels.back().push_back(letter >= 'a' && letter <= 'y' ? letter - 'm' : 0);
    }
  }
  return levels;
}

/// Where the wrong cells are, if they are few.
MapShape local_shape(const std::vector<std::string>& worst) {
  const std::size_t down = worst.size(), across = worst[0].size();
  std::size_t top = down, bottom = 0, left = across, right = 0, wrong = 0, full_rows = 0, full_columns = 0;
  std::vector<std::size_t> in_column(across);
  for (std::size_t r = 0; r < down; ++r) {
    std::size_t in_row = 0;
    for (std::size_t c = 0; c < across; ++c) {
      if (is_wrong(worst[r][c])) {
        ++in_row;
        ++in_column[c];
        top = std::min(top, r);
        bottom = r;
        left = std::min(left, c);
        right = std::max(right, c);
      }
    }
    wrong += in_row;
    full_rows += 10 * in_row >= 9 * across ? 1 : 0;
  }
  full_columns = static_cast<std::size_t>(
      std::ranges::count_if(in_column, [down](std::size_t count) { return 10 * count >= 9 * down; }));
  if (wrong == 0) {
    return MapShape::none;
  }
  if (across > 1 && 10 * full_rows * across >= 9 * wrong) {
    return MapShape::rows;
  }
  if (down > 1 && 10 * full_columns * down >= 9 * wrong) {
    return MapShape::columns;
  }
  const std::size_t area = (bottom - top + 1) * (right - left + 1);
  return 10 * wrong >= 9 * area && 2 * area <= down * across ? MapShape::block : MapShape::none;
}

double sum_of_squares(const std::vector<std::vector<double>>& levels) {
  double sum = 0;
  for (const std::vector<double>& row : levels) {
    for (const double level : row) {
      sum += level * level;
    }
  }
  return sum;
}

/// Share of the squares that a square map leaves when its mirror image is added: 0 if opposite colours face each other.
double left_by_mirror(const std::vector<std::vector<double>>& levels, double squares) {
  double sum = 0;
  for (std::size_t r = 0; r < levels.size(); ++r) {
    for (std::size_t c = 0; c < levels.size(); ++c) {
      sum += (levels[r][c] + levels[c][r]) * (levels[r][c] + levels[c][r]) / 2;
    }
  }
  return sum / squares;
}

/// Share of the squares that the means of the columns explain.
double in_columns(const std::vector<std::vector<double>>& levels, double squares) {
  double sum = 0;
  for (std::size_t c = 0; c < levels[0].size(); ++c) {
    double column = 0;
    for (const std::vector<double>& row : levels) {
      column += row[c];
    }
    sum += column * column / static_cast<double>(levels.size());
  }
  return sum / squares;
}

/// Share of the squares in the best product of a column and a row, by power iteration.
double in_one_product(const std::vector<std::vector<double>>& levels, double squares) {
  constexpr int kSteps = 30;
  std::vector<double> right(levels[0].size());
  for (std::size_t c = 0; c < right.size(); ++c) {
    right[c] = 1 + 0.1 * static_cast<double>(c % 7);
  }
  double captured = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> left, next(right.size());
    double length = 0;
    for (const double x : right) {
      length += x * x;
    }
    for (const std::vector<double>& row : levels) {
      double sum = 0;
      for (std::size_t c = 0; c < row.size(); ++c) {
        sum += row[c] * right[c];
      }
      left.push_back(sum);
    }
    captured = 0;
    for (std::size_t r = 0; r < levels.size(); ++r) {
      captured += left[r] * left[r];
      for (std::size_t c = 0; c < next.size(); ++c) {
        next[c] += left[r] * levels[r][c];
      }
    }
    captured = length > 0 ? captured / length : 0;
    const double largest = std::ranges::max(next, {}, [](double x) { return std::abs(x); });
    if (largest == 0) {
      return 0;
    }
    std::ranges::transform(next, right.begin(), [largest](double x) { return x / std::abs(largest); });
  }
  return captured / squares;
}

struct Glyph {
  std::string_view name, meaning;
  double (*level)(int row, int column);  ///< from -1 to 1
};

double noise(int row, int column) {
  return ((row * 37 + column * 101 + row * column * 13) % 19 - 9) / 9.0;
}

double line(int i) {
  constexpr std::array kLine = {0.9, -0.5, 0.7, -0.9, 0.3, -0.7, 0.5, -0.2};
  return kLine[static_cast<std::size_t>(i) % kLine.size()];
}

double mirrored(int row, int column) {
  const double level = noise(std::min(row, column) + 1, std::max(row, column));
  return row == column ? 0 : row < column ? level : -level;
}

Glyph glyph_of(MapShape shape) {
  switch (shape) {
    case MapShape::block:
      return {"a block", "a tile is missing, stale or was not written",
              [](int r, int c) { return r >= 2 && r < 5 && c >= 4 && c < 7 ? (noise(r, c) > 0 ? 0.9 : -0.9) : 0; }};
    case MapShape::rows:
      return {"whole rows", "rows are swapped, stale or skipped",
              [](int r, int c) { return r == 2 || r == 5 ? (r == 2 ? 1 : -1) * noise(3, c) : 0; }};
    case MapShape::columns:
      return {"whole columns", "columns are stale or skipped, or their sums are wrong",
              [](int r, int c) { return c == 6 ? noise(r, 3) : 0; }};
    case MapShape::mirrored:
      return {"mirrored at the diagonal", "transposed: opposite colours face each other", &mirrored};
    case MapShape::stripes_down:
      return {"stripes down", "something per column is missing, such as a bias", [](int, int c) { return line(c); }};
    case MapShape::woven:
      return {"woven", "part of the sum over k is missing or doubled",
              [](int r, int c) { return line(r + 2) * line(c); }};
    case MapShape::noise:
      return {"even noise", "less precision than promised, or another operand",
              [](int r, int c) { return 0.6 * noise(r, c); }};
    case MapShape::none:
      break;
  }
  return {{}, {}, nullptr};
}

}  // namespace

MapShape shape_of(const std::vector<std::string>& worst, const std::vector<std::string>& mean, bool square) {
  std::size_t wrong = 0, cells = 0;
  for (const std::string& row : worst) {
    wrong += static_cast<std::size_t>(std::ranges::count_if(row, &is_wrong));
    cells += row.size();
  }
  if (2 * wrong <= cells) {
    return local_shape(worst);
  }
  const std::vector<std::vector<double>> levels = levels_of(mean);
  constexpr std::size_t kFewest = 4;  // cells along a side, for a pattern
  const double squares = levels.empty() ? 0 : sum_of_squares(levels);
  if (squares == 0 || levels.size() < kFewest || levels[0].size() < kFewest) {
    return MapShape::none;
  }
  if (in_columns(levels, squares) > 0.8) {
    return MapShape::stripes_down;
  }
  if (square && levels.size() == levels[0].size() && left_by_mirror(levels, squares) < 0.1) {
    return MapShape::mirrored;
  }
  return in_one_product(levels, squares) > 0.6 ? MapShape::woven : MapShape::noise;
}

std::string shape_glyph(MapShape shape) {
  const Glyph glyph = glyph_of(shape);
  if (glyph.level == nullptr) {
    return "";
  }
  constexpr int kCells = 8, kCell = 5;
  std::string cells;
  for (int row = 0; row < kCells; ++row) {
    for (int column = 0; column < kCells; ++column) {
      if (const double level = glyph.level(row, column); level != 0) {
        cells += fmt::format("<path style=\"fill:var(--{});fill-opacity:{:.2f}\" d=\"M{} {}h5v5h-5z\"/>",
                             level > 0 ? "more" : "less", std::abs(level), column * kCell, row * kCell);
      }
    }
  }
  return fmt::format(
      "<div class=\"glyph\"><svg class=\"key\" viewBox=\"-1 -1 42 42\" aria-hidden=\"true\">{}<rect width=\"40\" "
      "height=\"40\" fill=\"none\" stroke=\"currentColor\" "
      "stroke-opacity=\".35\"/></svg><span><b>{}</b><br>{}</span></div>\n",
      cells, glyph.name, glyph.meaning);
}

}  // namespace numcheck::report::views
