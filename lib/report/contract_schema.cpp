// JSON Schema of contracts.
#include <nlohmann/json.hpp>

#include "report/contract.hpp"
#include "report/schema_builder.hpp"

namespace numcheck::report {

nlohmann::json contract_schema() {
  using namespace schema;
  nlohmann::json cases = texts("identifiers of the cases that must run, each of which once had a verdict");
  cases["minItems"] = 1;
  nlohmann::json versions = {{"description", "version; a list: any of these; null: unknown"},
                             {"oneOf", {text_or_null("version"), texts("versions")}}};
  nlohmann::json plans = list_of(
      object({{"plan", text("name of the plan")},
              {"digest", text("of the plan then, for people: the plan may change")},
              {"device", text("its name, for people")},
              {"libraries", described(map_of(std::move(versions)),
                                      "the libraries that they ran with: the contract holds for these versions")},
              {"cases", std::move(cases)}}));
  plans["minItems"] = 1;
  nlohmann::json schema =
      object({{"schema", {{"const", kContractSchemaName}, {"description", "what this file is"}}},
              {"schema_version",
               {{"type", "string"},
                {"pattern", "^1\\.[0-9]+\\.[0-9]+$"},
                {"description", "version of the format: major breaks readers, minor adds members"}}},
              {"architecture",
               {{"type", "string"},
                {"pattern", "^sm_[0-9]+$"},
                {"description", "compute capability"},
                {"examples", {"sm_90"}}}},
              {"simulated", flag("it is about the simulated device")},
              {"plans", described(std::move(plans), "what each plan promises")}});
  schema["properties"]["derived"] =
      text("from what the promises follow if no run on the architecture showed them; absent: reports of runs did");
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["$id"] = "https://te-numcheck.invalid/contract-1.schema.json";  // a name, not a place
  schema["title"] = "te-numcheck contract of what must run";
  return schema;
}

}  // namespace numcheck::report
