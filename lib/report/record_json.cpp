#include "report/record_json.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "report/record_members.hpp"

namespace numcheck::report {

using nlohmann::json;

nlohmann::json to_json(const verdict::CaseResult& result) {
  const plan::Case& c = *result.c;
  nlohmann::json record = plan::case_to_json(c);
  record.update(object_of(case_members(), result));
  if (const std::optional<plan::XFail>& known = result.known_issue) {
    record["xfail"] = {{"reason", known->reason}, {"expires", known->expires}};
    json& xfail = record["xfail"];
    for (const auto& [member, text] :
         {std::pair("cause", &known->cause), std::pair("error", &known->error), std::pair("link", &known->link)}) {
      if (!text->empty()) {
        xfail[member] = *text;
      }
    }
    if (!known->place.file.empty()) {
      xfail.update({{"file", known->place.file}, {"line", known->place.line}, {"column", known->place.column}});
    }
    if (result.known_issue_expired) {
      xfail["expired"] = true;
    }
  }
  return record;
}

}  // namespace numcheck::report
