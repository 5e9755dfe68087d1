// The console's table of causes that several failures share.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "report/views/console.hpp"
#include "report/views/console_format.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {

using nlohmann::json;

std::string render_causes(const json& report, const ConsoleOptions& options) {
  if (!report.contains("causes")) {
    return "";
  }
  std::vector<std::vector<Cell>> rows;
  for (const json& row : report.at("causes")) {
    rows.push_back({{std::to_string(row.at("cases").get<std::size_t>()), Colour::alarm},
                    {row.at("cause").get<std::string>()},
                    {row.at("backend").get<std::string>()},
                    {row.at("implementation").get<std::string>()},
                    {fmt::format("{}", fmt::join(row.at("modes").get<std::vector<std::string>>(), " "))},
                    {parameters_of(row.at("first_id").get<std::string>())}});
  }
  return paint("causes", Colour::bold, options.colour) + "\n" +
         render_table({{"cases", true}, {"cause"}, {"backend"}, {"implementation"}, {"modes"}, {"first"}}, rows,
                      options.width, options.colour);
}

}  // namespace numcheck::report::views
