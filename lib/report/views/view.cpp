#include "report/views/view.hpp"

#include <array>

#include <nlohmann/json.hpp>

#include "report/brief.hpp"
#include "report/contract.hpp"
#include "report/report_text.hpp"
#include "report/views/views.hpp"

namespace numcheck::report::views {
namespace {

std::string render_brief(const nlohmann::json& report) {
  return brief_text(brief_report(report));
}

constexpr std::array kViews = {
    View{"--json", "write the report to this file; - writes it, and nothing else, to stdout", &report_text, true},
    View{"--brief-json",
         "write a brief report to this file, one case per line: digests and tightest gates, as a baseline",
         &render_brief, false, true},
    View{"--junit", "write JUnit XML to this file, for CI servers", &render_junit, false, true},
    View{"--markdown", "write a summary for a pull request to this file; $GITHUB_STEP_SUMMARY is appended to",
         &render_markdown, false, true},
    View{"--write-contract", "write the cases that ran with a verdict to this file, as a contract of what must run",
         &render_contract_file, false, true},
    View{"--csv", "write a table to this file, a row for each output", &render_csv, false, true},
    View{"--html", "write a page with pictures to this file, for a browser; it needs nothing else", &render_html, false,
         true},
};

}  // namespace

std::span<const View> all_views() noexcept {
  return kViews;
}

}  // namespace numcheck::report::views
