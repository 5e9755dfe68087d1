#include "report/picture_members.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/members.hpp"
#include "report/output_members.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using namespace schema;
using metric::ErrorMap;
using metric::MapCell;

constexpr char kNothingCompared = '?';

char worst_letter(const MapCell& cell) {
  if (cell.compared == 0) {
    return kNothingCompared;
  }
  if (cell.unwritten) {
    return '!';
  }
  if (cell.mismatch) {
    return '#';
  }
  if (cell.over_bound == 0) {
    return '0';
  }
  constexpr double kLetterOfBound = 8;
  return static_cast<char>('a' + std::clamp(kLetterOfBound + std::ceil(std::log2(cell.over_bound)), 0.0, 25.0));
}

char mean_letter(const MapCell& cell, double unit) {
  if (cell.compared == 0) {
    return kNothingCompared;
  }
  constexpr double kSteps = 12;
  const double share = unit > 0 ? std::clamp(cell.mean_error / unit, -1.0, 1.0) : 0;
  return static_cast<char>('m' + std::lround(kSteps * share));
}

double largest_mean(const ErrorMap& map) {
  double largest = 0;
  for (const MapCell& cell : map.cells) {
    largest = std::max(largest, std::abs(cell.mean_error));
  }
  return largest;
}

template <class Letter>
std::vector<std::string> drawn(const ErrorMap& map, Letter letter) {
  std::vector<std::string> rows;
  for (std::int64_t row = 0; row < map.down; ++row) {
    std::string& text = rows.emplace_back();
    for (std::int64_t column = 0; column < map.across; ++column) {
      text += letter(map.cells[static_cast<std::size_t>(row * map.across + column)]);
    }
  }
  return rows;
}

const Members<ErrorMap>& map_members() {
  static const Members<ErrorMap> members = {
      {"rows", count("rows of the output as a matrix: those of all matrices of the batch"), &at<&ErrorMap::rows>},
      {"cols", count("columns"), &at<&ErrorMap::cols>},
      {"cell_rows", count("rows that a cell covers; the last cells may cover fewer"), &at<&ErrorMap::cell_rows>},
      {"cell_cols", count("columns that a cell covers"), &at<&ErrorMap::cell_cols>},
      {"worst",
       list_of(
           text("a row of cells, a character each, for the largest error over bound: 0 none, a up to 2^-8, then a "
                "letter per doubling, i up to the bound, j up to twice the bound, ... z beyond 2^16 times; # NaN or "
                "infinity is wrong, ! not written, ? nothing compared")),
       [](const ErrorMap& map) { return json(drawn(map, &worst_letter)); }},
      {"mean",
       list_of(text("a row of cells, a character each, for the mean error: from -mean_unit (a) over 0 (m) to mean_unit "
                    "(y); ? nothing compared")),
       [](const ErrorMap& map) {
         return json(drawn(map, [unit = largest_mean(map)](const MapCell& cell) { return mean_letter(cell, unit); }));
       }},
      {"mean_unit", real("largest |mean error| of a cell, in units of the output"),
       [](const ErrorMap& map) { return number(largest_mean(map)); }}};
  return members;
}

/// A window with its port.
struct WindowSource {
  const verdict::OutputWindow* window;
  const op::Port* port;
};

/// The window's elements, row by row.
template <class Value>
json matrix_of(const verdict::OutputWindow& window, Value value) {
  json rows = json::array();
  for (std::int64_t row = 0; row < window.rows; ++row) {
    json& elements = rows.emplace_back(json::array());
    for (std::int64_t column = 0; column < window.cols; ++column) {
      elements.push_back(value(static_cast<std::size_t>(row * window.cols + column)));
    }
  }
  return rows;
}

const Members<WindowSource>& window_members() {
  using S = WindowSource;
  static const Members<S> members = {
      {"first", list_of(count("batch (if several), row, column of the first element")),
       [](const S& s) { return position(s.window->first, *s.port); }},
      {"got", list_of(list_of(real("what the device returned"))),
       [](const S& s) { return matrix_of(*s.window, [&](std::size_t i) { return number(s.window->got[i]); }); }},
      {"got_bits", list_of(list_of(text("bit pattern as stored"))),
       [](const S& s) {
         const int digits = 2 * core::dtype_info(s.port->dtype).storage_bytes;
         return matrix_of(*s.window,
                          [&](std::size_t i) { return fmt::format("0x{:0{}x}", s.window->got_bits[i], digits); });
       }},
      {"expected", list_of(list_of(real("reference in double"))),
       [](const S& s) { return matrix_of(*s.window, [&](std::size_t i) { return number(s.window->expected[i]); }); }}};
  return members;
}

}  // namespace

nlohmann::json picture_json(const verdict::OutputPicture& picture, const op::Port& port) {
  json members = {{"error_map", object_of(map_members(), picture.map)}};
  if (picture.around_worst.has_value()) {
    members["around_worst"] = object_of(window_members(), WindowSource{&*picture.around_worst, &port});
  }
  return members;
}

nlohmann::json picture_properties() {
  json map = rule_of(map_members());
  map["description"] = "where the errors are; of outputs that fail or warn, or of all with --maps";
  json window = rule_of(window_members());
  window["description"] = "the elements around the worst one of an output that fails or warns, up to 5 x 5";
  return {{"error_map", std::move(map)}, {"around_worst", std::move(window)}};
}

}  // namespace numcheck::report
