// A statistic over the steps of a case, as a table.
#pragma once

#include <string_view>
#include <vector>

namespace numcheck::op {

/// A column: one value for each row, NaN where it has none. Names, units and docs live as long as the process.
struct SeriesColumn {
  std::string_view name;  ///< "sqnr_db"
  std::string_view unit;  ///< columns of one unit are plotted together; empty: they are numbers of things, not plotted
  std::string_view doc;   ///< what it says
  std::vector<double> values;
};

/// Columns of equal length; the first one has the steps' numbers, ascending. None: no series.
using Series = std::vector<SeriesColumn>;

}  // namespace numcheck::op
