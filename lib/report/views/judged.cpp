#include "report/views/judged.hpp"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

double share_of(const json& metrics) {
  const auto found = metrics.find("judged");
  return found == metrics.end() ? 1 : number_value(*found);
}

}  // namespace

std::string judged_text(const json& metrics) {
  const double share = share_of(metrics);
  return share < 1 ? fmt::format("judged {:.1f} %", std::floor(1000 * share) / 10) : "";
}

std::string judged_sentence(const json& report) {
  std::size_t cases = 0;
  double least = 1;
  std::string what;
  for (const json& record : report.at("cases")) {
    bool all = true;
    for (const json& run : record.at("runs")) {
      for (const auto& [port, output] : run.at("outputs").items()) {
        const double share = share_of(output.at("metrics"));
        all = all && !(share < 1);
        if (share < least) {
          least = share;
          what = fmt::format("{} of {} in {}", judged_text(output.at("metrics")), port,
                             record.at("id").get_ref<const std::string&>());
        }
      }
    }
    cases += all ? 0 : 1;
  }
  return cases < 2 ? what : fmt::format("{}: the least of {} cases with elements that are not judged", what, cases);
}

}  // namespace numcheck::report::views
