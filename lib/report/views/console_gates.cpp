// The console view of what a run was required to do.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/views/console.hpp"
#include "report/views/console_format.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {

std::string render_contract(const nlohmann::json& report, const ConsoleOptions& options) {
  const auto found = report.find("contract");
  if (found == report.end()) {
    return "";
  }
  constexpr std::size_t kShown = 20;
  const nlohmann::json& contract = *found;
  const nlohmann::json& broken = contract.at("broken");
  const auto promised = contract.at("promised").get<std::size_t>(),
             not_selected = contract.at("not_selected").get<std::size_t>();
  std::string text = broken.empty() ? fmt::format("contract kept: {} of {} promised cases ran",
                                                  contract.at("kept").get<std::size_t>(), promised)
                                    : paint("CONTRACT BROKEN", Colour::alarm, options.colour) +
                                          fmt::format(": {} of {} promised cases did not run", broken.size(), promised);
  text += not_selected == 0 ? "\n"
                            : fmt::format("; {} {} not selected\n", not_selected, not_selected == 1 ? "was" : "were");
  for (const nlohmann::json& library : contract.value("absent_libraries", nlohmann::json::array())) {
    text += fmt::format("  the contract names {}, which is not here\n", library.get<std::string>());
  }
  if (contract.contains("derived")) {
    text += "  it was derived and not seen in a run: \"derived\" in the contract says from what\n";
  }
  const std::size_t shown = options.verbosity > 0 ? broken.size() : std::min(kShown, broken.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const nlohmann::json& promise = broken[i];
    text += fmt::format("  {}  {}: {}\n", promise.at("status").get<std::string>(), promise.at("id").get<std::string>(),
                        promise.at("reason").get<std::string>());
  }
  return text +
         (shown < broken.size() ? fmt::format("  ({} more: use -v or see report.json)\n", broken.size() - shown) : "");
}

}  // namespace numcheck::report::views
