// The report as one page: complete without scripts and without anything from elsewhere. Chart.js adds charts if the build
// found it; our own script adds filters.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "html_page.inc"  // kStyle, kScript, kCharts
#include "report/report.hpp"
#include "report/views/html_sections.hpp"
#include "report/views/html_text.hpp"
#include "report/views/views.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// Chart.js is distributed under it, and so must be pages that contain it.
constexpr std::string_view kChartLicense = R"(/*
 Chart.js, Copyright (c) 2014-2022 Chart.js Contributors, with @kurkle/color, Copyright (c) 2018-2021 Jukka Kurkela. The MIT
 License:

 Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
 files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
 modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
 Software is furnished to do so, subject to the following conditions:

 The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
 Software.

 THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
 WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
 COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
 ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
*/
)";

struct Section {
  std::string_view anchor, label;
  std::string (*render)(const HtmlSource&);
};

constexpr std::array kSections = {
    Section{"gates", "Required", &gates_section},
    Section{"matrix", "Ops and modes", &matrix_section},
    Section{"failures", "Not passed", &failures_section},
    Section{"charts", "Errors", &charts_section},
    Section{"series", "Step by step", &series_section},
    Section{"override", "TF32 override", &override_section},
    Section{"libraries", "Versions", &libraries_section},
    Section{"precision", "Precision", &precision_section},
    Section{"not-told", "Not shown", &not_told_section},
    Section{"cases", "All cases", &cases_section},
    Section{"times", "Times", &times_section},
    Section{"machine", "Machine", &machine_section},
};

std::vector<std::string> digests_of(const std::vector<CaseFacts>& facts) {
  std::vector<std::string> digests;
  for (const CaseFacts& one : facts) {
    digests.push_back(one.digest);
  }
  return short_digests(digests);
}

std::vector<CaseFacts> facts_of_all(const json& cases) {
  std::vector<CaseFacts> facts;
  facts.reserve(cases.size());
  std::ranges::transform(cases, std::back_inserter(facts), &facts_of);
  return facts;
}

/// Only letters, digits, - and _: an anchor is also part of a link.
std::string anchor_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    result += plain ? std::string(1, c) : fmt::format(".{:02x}", static_cast<unsigned char>(c));
  }
  return result;
}

}  // namespace

HtmlSource::HtmlSource(const json& of_report)
    : report(of_report),
      cases(of_report.at("cases")),
      facts(facts_of_all(of_report.at("cases"))),
      digests(digests_of(facts)) {}

std::string case_anchor(const std::string& digest) {
  return "case-" + anchor_text(digest);
}

std::string group_anchor(const std::string& op, const std::string& mode) {
  return "group-" + anchor_text(op) + "." + anchor_text(mode);
}

std::string render_html(const json& report) {
  const HtmlSource source(report);
  std::string body, links;
  for (const Section& section : kSections) {
    if (const std::string text = section.render(source); !text.empty()) {
      body += "<section>\n" + text + "</section>\n";
      links += fmt::format("<a href=\"#{}\">{}</a>\n", section.anchor, section.label);
    }
  }
  const json& tool = part_at(report, "tool");
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src "
      "'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>{} – "
      "te-numcheck</title>\n<style>\n{}</style>"
      "</head>\n<body>\n{}<nav>\n{}</nav>\n<main>\n{}</main>\n<footer>te-numcheck {} ({}{}), report version "
      "{}</footer>\n",
      html_text(text_at(part_at(report, "plan"), "name")), kStyle, verdict_section(source), links, body,
      html_text(text_at(tool, "version")), html_text(text_at(tool, "revision")),
      tool.contains("dirty") && tool.at("dirty") == true ? ", changed" : "",
      html_text(text_at(report, "schema_version")));
  if (!kCharts.empty()) {
    text += fmt::format("<script>\n{}{}\n</script>\n", kChartLicense, kCharts);
  }
  return text + fmt::format("<script>\n{}</script>\n</body></html>\n", kScript);
}

}  // namespace numcheck::report::views
