// A report that is read back, as by --failed-in, and then every view of its complete cases.
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/parse_report.hpp"
#include "report/record_shape.hpp"
#include "text.hpp"
#include "views.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace numcheck;
  std::vector<nlohmann::json> whole;
  try {
    const nlohmann::json report = report::parse_report(fuzz::text(data, size), "report.json");
    for (const nlohmann::json& record : report.at("cases")) {
      if (report::record_error(record).empty()) {
        whole.push_back(record);
      }
    }
  } catch (const core::IoError&) {
    return 0;
  }
  fuzz::show(whole);
  return 0;
}
