// The console's table of changes between versions of a library.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"
#include "report/number.hpp"
#include "report/views/console.hpp"
#include "report/views/console_format.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

Cell count_cell(const json& number, Colour colour) {
  return {std::to_string(number.get<std::size_t>()), number == 0 ? Colour::dim : colour};
}

std::vector<Cell> cells(const json& row) {
  const bool has_changed = row.at("changed") != 0;
  const json change = has_changed ? row.at("changes").front() : json();
  const auto ratio = [&change](const char* version) { return ratio_text(change.at("error_over_limit").at(version)); };
  return {{row.at("op")},
          {row.at("mode")},
          {fmt::format("{} -> {}", row.at("base").get<std::string>(), row.at("other").get<std::string>())},
          count_cell(row.at("identical"), Colour::green),
          count_cell(row.at("changed"), Colour::yellow),
          count_cell(row.at("not_comparable"), Colour::yellow),
          count_cell(row.at("neither"), Colour::none),
          {has_changed ? fmt::format("{} of {}", change.at("outputs").size(), change.at("of").get<std::size_t>()) : ""},
          {has_changed ? ratio("base") + " -> " + ratio("other") : ""},
          {has_changed ? parameters_of(change.at("id").get<std::string>()) : ""}};
}

}  // namespace

std::string render_libraries(const json& report, const ConsoleOptions& options) {
  if (!report.contains("library_changes")) {
    return "";
  }
  const json& changes = report.at("library_changes");
  std::vector<std::vector<Cell>> rows;
  std::size_t unchanged = 0;
  for (const json& row : changes.at("rows")) {
    if (options.verbosity > 0 || row.at("changed") != 0) {
      rows.push_back(cells(row));
    } else {
      ++unchanged;
    }
  }
  std::string text = paint("versions of libraries", Colour::bold, options.colour) + "\n";
  if (!rows.empty()) {
    text += render_table({{"op"},
                          {"mode"},
                          {"versions"},
                          {"identical", true},
                          {"changed", true},
                          {"not comparable", true},
                          {"neither", true},
                          {"outputs", true},
                          {"error/limit", true},
                          {"smallest change", false, true}},
                         rows, options.width, options.colour);
  }
  if (unchanged > 0 && !rows.empty()) {
    text += fmt::format("({} without changed bits: use -v or see report.json)\n",
                        core::counted(static_cast<double>(unchanged), "row"));
  }
  for (const json& sentence : changes.at("sentences")) {
    text += "  " + sentence.get<std::string>() + "\n";
  }
  return text;
}

}  // namespace numcheck::report::views
