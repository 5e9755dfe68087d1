#include "report/finding_members.hpp"

#include <nlohmann/json.hpp>

#include "report/metric_members.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using namespace schema;

const Members<op::Finding>& finding_members() {
  using op::Finding;
  static const Members<Finding> members = {
      {"name", text("the op's own statistic"), &at<&Finding::name>},
      {"measured",
       real("the statistic; of a diagnosis, the share of the squared error, or of the bits, that it explains"),
       &at<&Finding::measured>},
      {"text", text("what it means"), &at<&Finding::text>}};
  return members;
}

json values_json(const op::SeriesColumn& column) {
  json values = json::array();
  for (const double value : column.values) {
    values.push_back(number(value));
  }
  return values;
}

const Members<op::SeriesColumn>& series_members() {
  using op::SeriesColumn;
  static const Members<SeriesColumn> members = {
      {"name", text("of the column"), &at<&SeriesColumn::name>},
      {"unit", text("columns of one unit are plotted together; empty: not plotted"), &at<&SeriesColumn::unit>},
      {"doc", text("what it says"), &at<&SeriesColumn::doc>},
      {"values", described(list_of(ref("number")), "one for each row; NaN: it has none"), &values_json}};
  return members;
}

}  // namespace

// A diagnosis names a cause, and a statistic over steps has a series; other findings do not have the members.
json finding_rule() {
  json rule = rule_of(finding_members());
  rule["properties"]["cause"] = text("what is wrong, in words that equal faults share");
  rule["properties"]["series"] = described(list_of(rule_of(series_members())),
                                           "the statistic step by step, where the case has steps: columns of equal "
                                           "length, of which the first has the steps' numbers");
  return rule;
}

json findings_json(std::span<const op::Finding> findings) {
  json list = json::array();
  for (const op::Finding& finding : findings) {
    json& object = list.emplace_back(object_of(finding_members(), finding));
    if (!finding.cause.empty()) {
      object["cause"] = finding.cause;
    }
    if (!finding.series.empty()) {
      object["series"] = list_of(series_members(), finding.series);
    }
  }
  return list;
}

}  // namespace numcheck::report
