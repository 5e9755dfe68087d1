// What the inputs of the run do not show: mistakes in formulas with which cases that passed would pass as well.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/views/html_sections.hpp"
#include "report/views/html_text.hpp"
#include "report/views/not_told.hpp"

namespace numcheck::report::views {

std::string not_told_section(const HtmlSource& source) {
  constexpr std::size_t kMaxRows = 200;  // more than there are known mistakes, but a report may have anything
  const auto counts = not_told_counts(source.report);
  if (counts.empty()) {
    return "";
  }
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(kMaxRows, counts.size()); ++i) {
    rows.push_back({html_text(counts[i].first), html_text(counts[i].second)});
  }
  std::string text =
      heading("not-told", "What these inputs do not show") +
      "<p class=\"soft\">A kernel with such a mistake in its formula would pass with these inputs. It is a "
      "fact about the inputs and changes no verdict.</p>\n" +
      html_table({">of those that pass", ""}, rows);
  return text + (rows.size() < counts.size()
                     ? fmt::format("<p class=\"soft\">{} more are in the report.</p>\n", counts.size() - rows.size())
                     : "");
}

}  // namespace numcheck::report::views
