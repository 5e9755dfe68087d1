// The console's list of the known issues that the cases met: those that gate come first, with what to do.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/views/console.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// What became of an entry in a case, in the order in which it is shown.
enum class Fate : std::uint8_t { expired, passes, excuses };

constexpr std::size_t kMaxShown = 20;

/// An entry, by place and reason: several may be on one line, and older reports have no places.
using Entry = std::tuple<Fate, std::string, std::size_t, std::size_t, std::string>;

struct Met {
  const json* xfail = nullptr;
  std::size_t cases = 0;
};

/// False if the entry did nothing to the case: one that crashed, or only warns.
bool has_fate(const json& record) {
  const std::string& status = record.at("status").get_ref<const std::string&>();
  const bool expired = record.at("xfail").value("expired", false);
  return status == "xfail" || status == "xpass" || (expired && (status == "fail" || status == "error"));
}

Fate fate_of(const json& record) {
  const std::string& status = record.at("status").get_ref<const std::string&>();
  return status == "xfail" ? Fate::excuses : status == "xpass" ? Fate::passes : Fate::expired;
}

std::map<Entry, Met> entries_of(const json& cases) {
  std::map<Entry, Met> entries;
  for (const json& record : cases) {
    if (!record.contains("xfail") || !has_fate(record)) {
      continue;
    }
    const json& xfail = record.at("xfail");
    Met& met = entries[{fate_of(record), xfail.value("file", ""), xfail.value("line", std::size_t{0}),
                        xfail.value("column", std::size_t{0}), xfail.at("reason").get<std::string>()}];
    met.xfail = &xfail;
    ++met.cases;
  }
  return entries;
}

std::string many(std::size_t cases, const char* one, const char* several) {
  return fmt::format("{} case{}", cases, cases == 1 ? one : several);
}

std::string entry_text(const Entry& entry, const Met& met, bool colour) {
  const auto& [fate, file, line, column, reason] = entry;
  const std::string place = file.empty() ? "" : fmt::format("{}:{}:{}  ", file, line, column);
  const std::string expires = met.xfail->at("expires").get<std::string>();
  const std::string link = met.xfail->value("link", "");
  const std::string why = "            " + reason + (link.empty() ? "" : "  " + link) + "\n";
  switch (fate) {
    case Fate::expired:
      return fmt::format(
          "  {}   {}expired on {}; {} as it says\n{}            mend what fails, or give the entry a later date\n",
          paint("EXPIRED", Colour::red, colour), place, expires, many(met.cases, " fails", "s fail"), why);
    case Fate::passes:
      return fmt::format(
          "  {}    {}{} that should fail\n{}            delete the entry, or limit it with \"match\", \"cause\" or "
          "\"error\"\n",
          paint("PASSES", Colour::red, colour), place, many(met.cases, " passes", "s pass"), why);
    case Fate::excuses:
      return fmt::format("  excuses   {}{}{}\n{}", place, many(met.cases, "", "s"),
                         expires.empty() ? "" : ", until " + expires, why);
  }
  return "";
}

}  // namespace

std::string render_known_issues(const json& report, const ConsoleOptions& options) {
  const std::map<Entry, Met> entries = entries_of(report.at("cases"));
  if (entries.empty()) {
    return "";
  }
  std::string text = paint("known issues", Colour::bold, options.colour) + "\n";
  std::size_t shown = 0;
  for (const auto& [entry, met] : entries) {
    if (shown++ < kMaxShown || options.verbosity > 0) {
      text += entry_text(entry, met, options.colour);
    }
  }
  if (shown > kMaxShown && options.verbosity <= 0) {
    text += fmt::format("  ({} more entries: use -v)\n", shown - kMaxShown);
  }
  return text;
}

}  // namespace numcheck::report::views
