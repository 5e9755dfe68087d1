#include "report/record_json.hpp"

#include <nlohmann/json.hpp>

#include "report/record_members.hpp"

namespace numcheck::report {

nlohmann::json to_json(const verdict::CaseResult& result) {
  const plan::Case& c = *result.c;
  nlohmann::json record = plan::case_to_json(c);
  record.update(object_of(case_members(), result));
  if (const std::optional<plan::XFail>& known = result.known_issue) {
    record["xfail"] = {{"reason", known->reason}, {"expires", known->expires}};
    if (!known->cause.empty()) {
      record["xfail"]["cause"] = known->cause;
    }
  }
  return record;
}

}  // namespace numcheck::report
