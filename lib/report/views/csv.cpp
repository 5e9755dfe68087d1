// Comma-separated values (RFC 4180): a row for each output of each run, one for cases that did not run.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/printable.hpp"
#include "report/case_facts.hpp"
#include "report/number.hpp"
#include "report/views/views.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// A text that a spreadsheet takes for a formula would be one.
std::string quoted(std::string text) {
  constexpr std::string_view kFormula = "=+-@\t\r";
  if (!text.empty() && kFormula.find(text.front()) != std::string_view::npos) {
    text.insert(0, 1, '\'');
  }
  // A line break is a blank, as a row is a line; whatever else acts on a terminal is a visible escape.
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  std::string result = "\"";
  for (const char c : core::printable(text)) {
    result += c == '"' ? "\"\"" : std::string(1, c);
  }
  return result + "\"";
}

std::string number_at(const json& object, const char* member) {
  const auto found = object.find(member);
  return found == object.end() ? "" : short_number(*found, ".9g");
}

std::string case_columns(const CaseFacts& facts) {
  return fmt::format("{},{},{},{},{},{}", quoted(facts.id), facts.digest, quoted(facts.op), quoted(facts.mode),
                     quoted(facts.backend), facts.status);
}

std::string output_columns(const json& output) {
  double largest = std::nan("");
  std::string gate;
  for (const json& criterion : output.at("criteria")) {
    if (const double ratio = ratio_of_criterion(criterion); !(ratio <= largest)) {
      largest = ratio;
      gate = criterion.at("name").get<std::string>();
    }
  }
  const json& metrics = output.at("metrics");
  return fmt::format("{},{},{},{},{},{},{},{}", number_at(metrics, "elements"), number_at(metrics, "judged"),
                     quoted(gate), short_number(number(largest), ".9g"), number_at(metrics, "rel_l2"),
                     number_at(metrics, "max_abs"), number_at(metrics, "max_ulp"),
                     output.at("xxh128").get<std::string>());
}

}  // namespace

std::string render_csv(const json& report) {
  std::string text =
      "case,digest,op,mode,backend,status,implementation,output,elements [1],judged [1],tightest gate,error/limit [1],"
      "relative L2 error [1],largest error [units of the output],largest error [ulp],output digest,device time "
      "[s],reason\r\n";
  for (const json& record : report.at("cases")) {
    const CaseFacts facts = facts_of(record);
    const std::string start = case_columns(facts), reason = quoted(facts.reason);
    bool any = false;
    for (const json& run : record.at("runs")) {
      const std::string implementation = quoted(run.at("implementation").get<std::string>());
      for (const auto& [port, output] : run.at("outputs").items()) {
        any = true;
        text += fmt::format("{},{},{},{},{},{}\r\n", start, implementation, quoted(port), output_columns(output),
                            number_at(run, "device_s"), reason);
      }
    }
    if (!any) {
      text += fmt::format("{},,,,,,,,,,,,{}\r\n", start, reason);
    }
  }
  return text;
}

}  // namespace numcheck::report::views
