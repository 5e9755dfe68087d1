#include "metric/groups.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace numcheck::metric {
namespace {

/// s^2, see groups.hpp: as much as the largest rounding errors exceed their mean square.
constexpr double kSquare = 4;

std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

/// The same, with those that are rounded alike.
double copies_of(const model::ErrorModel& model, std::int64_t rows, std::int64_t columns) {
  const double alike = std::max(model.slope_copies, model.rounding_copies);
  return std::min(static_cast<double>(rows) * static_cast<double>(columns), sharing_of(model, rows, columns) * alike);
}

/// What is expected of a group at most, and what chance adds.
class Expected {
 public:
  Expected(const op::Port& port, bool narrow, double squares)
      : narrow_(narrow), elements_(static_cast<double>(port.elements())), squares_(squares) {}

  /// A group of that many elements with that sum.
  [[nodiscard]] Group compare(std::int64_t index, std::int64_t elements, double sum) const {
    constexpr double kNarrowRate = 0.4, kRate = 0.25;
    if (narrow_) {
      return {.index = index, .elements = elements, .excess = sum, .unit = kSquare / kNarrowRate};
    }
    const auto n = static_cast<double>(elements);
    const double rest = elements_ > n ? (squares_ - sum) / (elements_ - n) : 0;
    const double unit = kSquare * std::max(1.0, rest) / kRate;
    return {.index = index, .elements = elements, .excess = sum + n * unit * std::log(1 - 2 * kRate) / 2, .unit = unit};
  }

 private:
  bool narrow_;
  double elements_, squares_;
};

/// The group that exceeds most, and NaN most of all.
template <class SumOf, class ElementsOf>
Group largest(const Expected& expected, std::int64_t count, double copies, SumOf sum_of, ElementsOf elements_of) {
  Group out{.excess = -std::numeric_limits<double>::infinity(), .unit = 1};
  for (std::int64_t i = 0; i < count; ++i) {
    const Group group = expected.compare(i, elements_of(i), sum_of(i));
    if (!(group.excess / group.unit <= out.excess / out.unit) && !std::isnan(out.excess)) {
      out = group;
    }
  }
  out.count = count;
  out.copies = copies;
  return out;
}

}  // namespace

double sharing_of(const model::ErrorModel& model, std::int64_t rows, std::int64_t columns) {
  const auto height = static_cast<double>(rows);
  const auto width = static_cast<double>(columns);
  const bool down = model.rows_agree || model.rows_walk_alike, across = model.columns_agree || model.columns_walk_alike;
  return model.lines_share ? std::max(height, width) : (down ? height : 1) * (across ? width : 1);
}

TileSums::TileSums(const op::Port& port)
    : port_rows_(port.rows),
      port_columns_(port.cols),
      rows_(divide_up(port.rows, kTileSide)),
      columns_(divide_up(port.cols, kTileSide)),
      sums_(static_cast<std::size_t>(port.batch * rows_ * columns_)) {}

void TileSums::take(std::array<double, 16>& sums, const Place& place) {
  const std::int64_t first = (place.matrix * rows_ + place.row) * columns_ + place.column;
  const std::int64_t width = std::min<std::int64_t>(std::ssize(sums), columns_ - place.column);
  std::copy_n(sums.begin(), width, sums_.begin() + first);
  sums.fill(0);
}

std::int64_t TileSums::elements_of(std::int64_t index) const {
  const std::int64_t row = index / columns_ % rows_ * kTileSide;
  const std::int64_t column = index % columns_ * kTileSide;
  return std::min(kTileSide, port_rows_ - row) * std::min(kTileSide, port_columns_ - column);
}

Groups largest_groups(const CompareInput& input, const Setup& setup, const PartialSums& rows,
                      const PartialSums& columns, const TileSums& tiles, double squares) {
  const op::Port port = clustered_shape(*input.port);
  const model::ErrorModel& model = *input.model;
  Groups out;
  out.rows_of_heads = port.rows != input.port->rows;
  if (setup.exact || setup.format.integer || model.one_error || model.element_errors) {
    return out;
  }
  const Expected expected(port, setup.format.narrow, squares);
  const std::int64_t height = std::min(kTileSide, port.rows);
  const std::int64_t width = std::min(kTileSide, port.cols);
  const auto row = [&](std::int64_t i) { return rows.total_z(static_cast<std::size_t>(i)); };
  const auto column = [&](std::int64_t i) { return columns.total_z(static_cast<std::size_t>(i)); };
  const auto matrix = [&](std::int64_t i) {
    double sum = 0;
    for (std::int64_t r = i * port.rows; r < (i + 1) * port.rows; ++r) {
      sum += row(r);
    }
    return sum;
  };
  const auto always = [](std::int64_t elements) { return [elements](std::int64_t) { return elements; }; };
  out.row = largest(expected, port.batch * port.rows, copies_of(model, 1, port.cols), row, always(port.cols));
  out.column = largest(expected, port.batch * port.cols, copies_of(model, port.rows, 1), column, always(port.rows));
  out.tile = largest(
      expected, tiles.count(), copies_of(model, height, width), [&](std::int64_t i) { return tiles.at(i); },
      [&](std::int64_t i) { return tiles.elements_of(i); });
  out.matrix =
      largest(expected, port.batch, copies_of(model, port.rows, port.cols), matrix, always(port.rows * port.cols));
  return out;
}

}  // namespace numcheck::metric
