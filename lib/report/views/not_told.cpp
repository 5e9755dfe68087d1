#include "report/views/not_told.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// Reports of other versions, and brief ones, do not say.
std::vector<std::string> not_told_of(const json& run) {
  std::vector<std::string> texts;
  const auto found = run.find("not_told");
  if (found != run.end() && found->is_array()) {
    for (const json& text : *found) {
      texts.push_back(text.is_string() ? text.get<std::string>() : text.dump());
    }
  }
  return texts;
}

}  // namespace

std::string not_told_text(const json& run) {
  const std::vector<std::string> texts = not_told_of(run);
  return texts.empty() ? std::string() : fmt::format("cannot tell {}", fmt::join(texts, ", "));
}

std::string not_told_lines(const json& report) {
  std::map<std::string, std::size_t> cases;
  for (const json& record : report.at("cases")) {
    const std::string& status = record.at("status").get_ref<const std::string&>();
    std::set<std::string> texts;
    for (const json& run : record.at("runs")) {
      const std::vector<std::string> of_run = not_told_of(run);
      texts.insert(of_run.begin(), of_run.end());
    }
    for (const std::string& text : texts) {
      cases[text] += status == "pass" || status == "warn" ? 1 : 0;
    }
  }
  std::string lines;
  for (const auto& [text, number] : cases) {
    if (number > 0) {
      lines += fmt::format("{} cannot tell {}\n", core::counted(static_cast<double>(number), "case"), text);
    }
  }
  return lines;
}

}  // namespace numcheck::report::views
