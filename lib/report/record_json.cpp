#include "report/record_json.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "report/record_members.hpp"

namespace numcheck::report {

namespace {

using nlohmann::json;

json known_issue_json(const plan::XFail& known) {
  json entry = {{"reason", known.reason}, {"expires", known.expires}};
  for (const auto& [member, text] :
       {std::pair("cause", &known.cause), std::pair("error", &known.error), std::pair("link", &known.link)}) {
    if (!text->empty()) {
      entry[member] = *text;
    }
  }
  if (!known.place.file.empty()) {
    entry.update({{"file", known.place.file}, {"line", known.place.line}, {"column", known.place.column}});
  }
  return entry;
}

}  // namespace

json to_json(const verdict::CaseResult& result) {
  json record = plan::case_to_json(*result.c);
  record.update(object_of(case_members(), result));
  if (result.known_issue.has_value()) {
    json& xfail = record["xfail"] = known_issue_json(*result.known_issue);
    if (result.known_issue_expired) {
      xfail["expired"] = true;
    }
  }
  for (const plan::XFail& issue : result.expired_issues) {
    record["expired_issues"].push_back(known_issue_json(issue));
  }
  return record;
}

}  // namespace numcheck::report
