#include "case_of_record.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "catalog.hpp"

namespace numcheck::app {

plan::Case case_of_record(nlohmann::json record) {
  if (record.is_object()) {
    for (const char* measured : {"id", "digest", "status", "reason", "runs", "error_over_limit", "time_s", "reproduce",
                                 "xfail", "expired_issues", "tags", "tolerance"}) {
      record.erase(measured);
    }
  }
  return plan::case_from_json(record, &find_op);
}

}  // namespace numcheck::app
