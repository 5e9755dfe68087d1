#include "report/record_json.hpp"

#include <nlohmann/json.hpp>

#include "report/record_members.hpp"

namespace numcheck::report {

nlohmann::json to_json(const verdict::CaseResult& result) {
  const plan::Case& c = *result.c;
  nlohmann::json record = plan::case_to_json(c);
  record.update(object_of(case_members(), result));
  if (c.xfail.has_value()) {
    record["xfail"] = {{"reason", c.xfail->reason}, {"expires", c.xfail->expires}};
  }
  return record;
}

}  // namespace numcheck::report
