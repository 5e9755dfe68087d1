#include "report/views/not_told.hpp"

#include <cstddef>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// Reports of other versions do not say; brief ones do if there is anything to say.
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

std::set<std::string> not_told_of_case(const json& record) {
  std::set<std::string> texts;
  const std::string status = record.at("status").get<std::string>();
  const auto runs = record.find("runs");
  if ((status == "pass" || status == "warn") && runs != record.end()) {
    for (const json& run : *runs) {
      const std::vector<std::string> of_run = not_told_of(run);
      texts.insert(of_run.begin(), of_run.end());
    }
  }
  return texts;
}

template <class Texts>
std::string sentence(const Texts& texts) {
  return texts.empty() ? std::string() : fmt::format("cannot tell {}", fmt::join(texts, ", "));
}

}  // namespace

std::string not_told_text(const json& run) {
  return sentence(not_told_of(run));
}

std::string not_told_by(const json& record) {
  return sentence(not_told_of_case(record));
}

std::vector<std::pair<std::string, std::string>> not_told_counts(const json& report) {
  std::map<std::string, std::size_t> cases;
  for (const json& record : report.at("cases")) {
    for (const std::string& text : not_told_of_case(record)) {
      ++cases[text];
    }
  }
  std::vector<std::pair<std::string, std::string>> counts;
  for (const auto& [text, number] : cases) {
    counts.emplace_back(core::counted(static_cast<double>(number), "case"), "cannot tell " + text);
  }
  return counts;
}

std::string not_told_lines(const json& report) {
  std::string lines;
  for (const auto& [cases, words] : not_told_counts(report)) {
    lines += fmt::format("{} {}\n", cases, words);
  }
  return lines;
}

}  // namespace numcheck::report::views
