#include "explain_pages.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "catalog.hpp"
#include "core/error.hpp"
#include "help.hpp"
#include "page_sources.hpp"
#include "page_text.hpp"
#include "report/report.hpp"
#include "report/summary.hpp"
#include "report/views/view.hpp"
#include "tolerance/gate_table.hpp"
#include "verdict/status_doc.hpp"

namespace numcheck::app {
namespace {

using nlohmann::json;

constexpr std::array kPages = {
    PageInfo{"plan", "writing a plan, from one case to a sweep to a gate"},
    PageInfo{"gates", "what is compared with what, each gate and what it catches"},
    PageInfo{"metrics", "each number that describes an error: formula, unit and source"},
    PageInfo{"report", "reading the console and report.json"},
    PageInfo{"statuses", "how a case can end, which statuses fail a run, exit codes"},
};

/// The exit code of a run in which one case passed and another one ended so.
int code_with(verdict::Status status) {
  json summary = {{verdict::status_name(verdict::Status::pass), 1}};
  summary[verdict::status_name(status)] = 1;
  return static_cast<int>(report::exit_code_of(summary, {}));
}

std::vector<Term> statuses() {
  std::vector<Term> terms;
  for (const verdict::Status status : verdict::all_statuses()) {
    terms.push_back({fmt::format("{:<13}{}", verdict::status_name(status), code_with(status)),
                     std::string(verdict::status_doc(status))});
  }
  return terms;
}

std::vector<Term> exit_codes() {
  std::vector<Term> terms;
  for (const int code : {0, 1, 2, 3, 4, 130}) {
    terms.push_back({std::to_string(code), std::string(exit_code_words(code))});
  }
  return terms;
}

std::vector<Term> gates() {
  std::vector<Term> terms;
  for (const tolerance::GateInfo& gate : tolerance::gate_table()) {
    terms.push_back(
        {std::string(gate.name), fmt::format("{}. Limit: {}. Catches: {}.", gate.measures, gate.limit, gate.catches)});
  }
  return terms;
}

std::vector<Term> views() {
  std::vector<Term> terms;
  for (const report::views::View& view : report::views::all_views()) {
    terms.push_back({view.flag, view.doc});
  }
  return terms;
}

/// The properties of a schema, with defaults.
std::vector<Term> properties(const json& schema) {
  std::vector<Term> terms;
  for (const auto& [name, rule] : schema.at("properties").items()) {
    if (!name.starts_with('$')) {
      const std::string fallback = rule.contains("default") ? fmt::format(" [{}]", rule.at("default").dump()) : "";
      terms.push_back({name, rule.at("description").get<std::string>() + fallback});
    }
  }
  return terms;
}

std::vector<Term> terms_of(std::string_view name) {
  const auto definition = [](const json& schema, const char* of) {
    return properties(schema.at("definitions").at(of));
  };
  if (name == "statuses") {
    return statuses();
  }
  if (name == "exit_codes") {
    return exit_codes();
  }
  if (name == "gates") {
    return gates();
  }
  if (name == "views") {
    return views();
  }
  if (name == "plan_keys") {
    return properties(plan::plan_schema(vocabulary()));
  }
  if (name == "case_keys") {
    return definition(plan::plan_schema(vocabulary()), "case");
  }
  if (name == "report_members") {
    return properties(report::report_schema());
  }
  if (name == "case_members") {
    return definition(report::report_schema(), "case");
  }
  if (name == "metrics") {
    return definition(report::report_schema(), "metrics");
  }
  if (name == "output_members") {
    return definition(report::report_schema(), "output");
  }
  throw core::InternalError(fmt::format("a page names the table \"{}\", which does not exist", name));
}

}  // namespace

std::span<const PageInfo> pages() noexcept {
  return kPages;
}

const PageInfo* find_page(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kPages, name, &PageInfo::name);
  return found == kPages.end() ? nullptr : &*found;
}

std::string explain_page(const PageInfo& page, std::size_t width, bool colour) {
  return render_page(page_source(page.name), &terms_of, width, colour);
}

}  // namespace numcheck::app
