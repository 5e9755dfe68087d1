// The elements around the worst one of an output: got with bits, and expected.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/views/html_map.hpp"
#include "report/views/html_text.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// Position in a batch, row and column of the window's first element.
std::vector<std::int64_t> first_of(const json& window) {
  std::vector<std::int64_t> first;
  for (const json& part : part_at(window, "first")) {
    first.push_back(part.is_number_integer() ? part.get<std::int64_t>() : 0);
  }
  return first;
}

std::vector<std::vector<double>> numbers_at(const json& window, const char* member) {
  std::vector<std::vector<double>> rows;
  for (const json& row : part_at(window, member)) {
    rows.emplace_back();
    for (const json& value : row) {
      rows.back().push_back(number_value(value));
    }
  }
  return rows;
}

}  // namespace

std::string window_table(const json& output) {
  const json& window = part_at(output, "around_worst");
  const auto got = numbers_at(window, "got"), expected = numbers_at(window, "expected");
  const json& bits = part_at(window, "got_bits");
  const std::vector<std::int64_t> first = first_of(window);
  if (got.empty() || got.size() != expected.size() || got.size() != bits.size() || first.size() < 2) {
    return "";
  }
  const std::int64_t row0 = first[first.size() - 2], column0 = first.back();
  double largest = 0;
  for (std::size_t r = 0; r < got.size(); ++r) {
    if (got[r].size() != expected[r].size() || got[r].size() != got[0].size() || bits[r].size() != got[0].size()) {
      return "";
    }
    for (std::size_t c = 0; c < got[r].size(); ++c) {
      const double error = std::abs(got[r][c] - expected[r][c]);
      largest = std::isfinite(error) ? std::max(largest, error) : largest;
    }
  }
  std::string head = "<tr><th></th>";
  for (std::size_t c = 0; c < got[0].size(); ++c) {
    head += fmt::format("<th>{}</th>", column0 + static_cast<std::int64_t>(c));
  }
  std::array<std::string, 2> tables = {head + "</tr>\n", head + "</tr>\n"};
  for (std::size_t r = 0; r < got.size(); ++r) {
    const std::string start = fmt::format("<tr><th>{}</th>", row0 + static_cast<std::int64_t>(r));
    std::array<std::string, 2> lines = {start, start};
    for (std::size_t c = 0; c < got[r].size(); ++c) {
      constexpr double kOfLargest = 0.1;
      const bool same = got[r][c] == expected[r][c] || (std::isnan(got[r][c]) && std::isnan(expected[r][c]));
      const bool near = std::abs(got[r][c] - expected[r][c]) < kOfLargest * largest;
      lines[0] += fmt::format("<td{}><b>{:.5g}</b><small>{}</small></td>", same || near ? "" : " class=\"off\"",
                              got[r][c], html_text(bits[r][c].is_string() ? bits[r][c].get<std::string>() : ""));
      lines[1] += fmt::format("<td>{:.5g}<small>&nbsp;</small></td>", expected[r][c]);
    }
    tables[0] += lines[0] + "</tr>\n";
    tables[1] += lines[1] + "</tr>\n";
  }
  const std::string where = first.size() > 2 ? fmt::format("in matrix {}, ", first[0]) : "";
  return fmt::format(
      "<div class=\"pictures\"><figure><figcaption>Got, with bits<span>{}around the worst element</span></figcaption>"
      "<table class=\"window\">{}</table></figure>\n<figure><figcaption>Expected<span>the same "
      "elements</span></figcaption>"
      "<table class=\"window\">{}</table></figure></div>\n",
      where, tables[0], tables[1]);
}

}  // namespace numcheck::report::views
