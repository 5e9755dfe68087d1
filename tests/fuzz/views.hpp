// All views of a report whose cases were read from a file and found usable.
#pragma once

#include <cstdlib>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/brief.hpp"
#include "report/report.hpp"
#include "report/views/console.hpp"
#include "report/views/views.hpp"

namespace numcheck::fuzz {

inline void show(const std::vector<nlohmann::json>& cases) {
  const nlohmann::json report = report::make_report({}, cases);
  if (report::views::render_console(report, {.colour = true, .verbosity = 2}).empty() ||
      report::brief_text(report::brief_report(report)).empty() || report::views::render_html(report).empty()) {
    std::abort();
  }
}

}  // namespace numcheck::fuzz
