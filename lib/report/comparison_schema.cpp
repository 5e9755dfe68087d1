// JSON Schema of what compare writes, and of what a run's record keeps of it.
#include <nlohmann/json.hpp>

#include "report/comparison.hpp"
#include "report/schema_builder.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using namespace schema;

json summary_definition() {
  json properties = json::object();
  for (std::size_t i = 0; i < kChanges; ++i) {
    properties[std::string(change_name(static_cast<Change>(i)))] = count("cases of which this became");
  }
  properties["regressions"] = count("cases that gate");
  return object(std::move(properties));
}

json change_definition() {
  json names = json::array();
  for (std::size_t i = 0; i < kChanges; ++i) {
    if (static_cast<Change>(i) != Change::identical) {
      names.push_back(change_name(static_cast<Change>(i)));
    }
  }
  const json side =
      object({{"status", text("status in that report; empty if it does not have the case")},
              {"error_over_limit", real("largest error/limit of all outputs; NaN if nothing was judged")}});
  return object({{"digest", digest("of what determines the numbers")},
                 {"id", text("identifier")},
                 {"change", {{"enum", std::move(names)}, {"description", "what became of the case"}}},
                 {"regression", flag("it makes the exit code 1")},
                 {"base", described(side, "the case in the base report")},
                 {"new", described(side, "the case in the new report")},
                 {"changed_outputs", texts("outputs whose bits differ")},
                 {"implementation", text("what ran before -> what runs now, if they differ; may be empty")},
                 {"reason", text("of the new status, or else of the old one; may be empty")}});
}

json settings_definition() {
  return texts("other differences between the runs: drivers, libraries, variables");
}

}  // namespace

json comparison_record_definition() {
  return object({{"baseline", text("file name of the report that the run was compared with")},
                 {"sentence", text("\"2 newly failing, 14 changed bits, 1102 identical\"")},
                 {"summary", described(summary_definition(), "number of cases by what became of them")},
                 {"settings", settings_definition()},
                 {"regressions", described(list_of(change_definition()), "the first of the cases that gate")}});
}

json comparison_schema() {
  json schema = object({{"schema", {{"const", kComparisonSchemaName}, {"description", "what this file is"}}},
                        {"schema_version",
                         {{"type", "string"},
                          {"pattern", "^1\\.[0-9]+\\.[0-9]+$"},
                          {"description", "version of the format: major breaks readers, minor adds members"}}},
                        {"sentence", text("\"2 newly failing, 14 changed bits, 1102 identical\"")},
                        {"summary", described(summary_definition(), "number of cases by what became of them")},
                        {"settings", settings_definition()},
                        {"cases", list_of(change_definition())}});
  schema["properties"]["cases"]["description"] = "all but the identical ones: those of the new report, then those gone";
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["$id"] = "https://te-numcheck.invalid/comparison-1.schema.json";  // a name, not a place
  schema["title"] = "te-numcheck comparison of two reports";
  schema["definitions"] = {{"number", number_definition()}};
  return schema;
}

}  // namespace numcheck::report
