// The console's list of the known issues that the cases met: those that gate come first, with what to do.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "report/views/console.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// What became of an entry in a case, in the order in which it is shown.
enum class Fate : std::uint8_t {
  expired,  ///< the case fails as it says
  idle,     ///< expired, and the case does not show what it says
  passes,
  excuses,
};

constexpr std::size_t kMaxShown = 20;

/// An entry, by place and reason: several may be on one line, and older reports have no places.
using Entry = std::tuple<Fate, std::string, std::size_t, std::size_t, std::string>;

struct Met {
  const json* xfail = nullptr;
  std::map<std::string, std::size_t> statuses;  ///< of the cases

  [[nodiscard]] std::size_t cases() const {
    return std::accumulate(statuses.begin(), statuses.end(), std::size_t{0},
                           [](std::size_t sum, const auto& status) { return sum + status.second; });
  }
};

/// Nothing if the entry did nothing to the case, as if it ran out of time or only warns, and may still do so.
std::optional<Fate> fate_of(const json& record) {
  const std::string& status = record.at("status").get_ref<const std::string&>();
  if (status == "xfail" || status == "xpass") {
    return status == "xfail" ? Fate::excuses : Fate::passes;
  }
  if (!record.at("xfail").value("expired", false)) {
    return std::nullopt;
  }
  return status == "fail" || status == "error" || status == "crashed" ? Fate::expired : Fate::idle;
}

class Entries {
 public:
  explicit Entries(const json& cases) {
    for (const json& record : cases) {
      if (const auto xfail = record.find("xfail"); xfail != record.end()) {
        if (const std::optional<Fate> fate = fate_of(record)) {
          add(*fate, *xfail, record);
        }
      }
      if (const auto expired = record.find("expired_issues"); expired != record.end()) {
        for (const json& entry : *expired) {
          add(Fate::idle, entry, record);
        }
      }
    }
    // What fails or passes somewhere is told already.
    std::erase_if(entries_, [this](const auto& item) {
      return std::get<Fate>(item.first) == Fate::idle &&
             (has(item.first, Fate::expired) || has(item.first, Fate::passes));
    });
  }

  [[nodiscard]] const std::map<Entry, Met>& all() const noexcept { return entries_; }

 private:
  [[nodiscard]] bool has(Entry entry, Fate fate) const {
    std::get<Fate>(entry) = fate;
    return entries_.contains(entry);
  }

  void add(Fate fate, const json& entry, const json& record) {
    Met& met = entries_[{fate, entry.value("file", ""), entry.value("line", std::size_t{0}),
                         entry.value("column", std::size_t{0}), entry.at("reason").get<std::string>()}];
    met.xfail = &entry;
    ++met.statuses[record.at("status").get_ref<const std::string&>()];
  }

  std::map<Entry, Met> entries_;
};

/// "2 skipped, 1 unsupported".
std::string statuses_text(const Met& met) {
  std::vector<std::string> parts;
  for (const auto& [status, cases] : met.statuses) {
    parts.push_back(fmt::format("{} {}", cases, status));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
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
          paint("EXPIRED", Colour::red, colour), place, expires, many(met.cases(), " fails", "s fail"), why);
    case Fate::idle:
      return fmt::format(
          "  {}   {}expired on {}; {} as it says: {}\n{}            {}\n", paint("EXPIRED", Colour::yellow, colour),
          place, expires,
          met.cases() == 1 ? "its only case does not fail" : fmt::format("none of its {} cases fails", met.cases()),
          statuses_text(met), why, "delete the entry, or give it a later date");
    case Fate::passes:
      return fmt::format(
          "  {}    {}{} that should fail\n{}            delete the entry, or limit it with \"match\", \"cause\" or "
          "\"error\"\n",
          paint("PASSES", Colour::red, colour), place, many(met.cases(), " passes", "s pass"), why);
    case Fate::excuses:
      return fmt::format("  excuses   {}{}{}\n{}", place, many(met.cases(), "", "s"),
                         expires.empty() ? "" : ", until " + expires, why);
  }
  return "";
}

}  // namespace

std::string render_known_issues(const json& report, const ConsoleOptions& options) {
  const Entries found(report.at("cases"));
  const std::map<Entry, Met>& entries = found.all();
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
