#include "report/schema_tables.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "report/schema_builder.hpp"

namespace numcheck::report::schema {

using nlohmann::json;

json override_definition() {
  const json state = object({{"case", text("digest")},
                             {"status", ref("status")},
                             {"observed", list_of({{"type", "string"}})},
                             {"rel_l2", ref("number")},
                             {"effective_bits", ref("number")},
                             {"device_s", ref("number")},
                             {"implementation", text("algorithm")},
                             {"bits", {{"enum", {"identical", "differ", nullptr}}}}});
  const json row = object({{"op", text("op")},
                           {"mode", text("mode")},
                           {"backend", text("backend")},
                           {"shape", text("parameters")},
                           {"inputs", {{"type", "object"}}},
                           {"base", {{"enum", {"unset", "0"}}}},
                           {"states", map_of(state)}});
  return object({{"rows", list_of(row)}, {"sentences", list_of({{"type", "string"}})}});
}

json causes_definition() {
  return list_of(object({{"cause", text("what is wrong with the runs")},
                         {"op", text("op")},
                         {"backend", text("backend")},
                         {"implementation", text("algorithm and split factor")},
                         {"modes", list_of({{"type", "string"}})},
                         {"cases", count("cases with such runs")},
                         {"runs", count("runs")},
                         {"first", digest()},
                         {"first_id", text("identifier of the first case")}}));
}

json precision_map_definition() {
  return list_of(
      object({{"op", text("op")},
              {"mode", text("mode")},
              {"request", map_of({{"type", "string"}})},
              {"backend", text("backend")},
              {"layout", map_of({{"type", "boolean"}})},
              {"expected", text("precision class that the request should give")},
              {"class", text("precision class that ran")},
              {"note", text("what the class leaves out; may be empty")},
              {"border", {{"enum", {"none", "shape", "algorithm", "unknown"}}}},
              {"where", text("condition on the shapes that ran, or the algorithms, that got this class and no other")},
              {"also", list_of({{"type", "string"}})},
              {"cases", count("cases with such runs")},
              {"runs", count("runs")},
              {"smallest", digest()},
              {"smallest_id", text("identifier of the smallest case")},
              {"smallest_size", ref("number")}}));
}

json library_changes_definition() {
  const json ratio = {{"oneOf", json::array({ref("number"), {{"type", "null"}}})}};
  const json change = object({{"case", digest()},
                              {"other_case", digest()},
                              {"id", text("identifier of the case under the base")},
                              {"elements", count("elements of all outputs")},
                              {"outputs", list_of({{"type", "string"}})},
                              {"of", count("outputs of the case")},
                              {"error_over_limit", object({{"base", ratio}, {"other", ratio}})}});
  const json reason = object({{"text", text("version, status and reason")}, {"cases", count("cases")}});
  const json row = object({{"op", text("op")},
                           {"mode", text("mode")},
                           {"backend", text("backend without version")},
                           {"base", text("the version that comes first")},
                           {"other", text("the version that is compared with it")},
                           {"cases", count("cases of both versions")},
                           {"identical", count("all digests of outputs are equal")},
                           {"changed", count("some are not")},
                           {"not_comparable", count("one version gave no outputs, or other ones from run to run")},
                           {"neither", count("both versions gave no outputs")},
                           {"changes", list_of(change)},
                           {"reasons", list_of(reason)}});
  return object({{"rows", list_of(row)}, {"sentences", list_of({{"type", "string"}})}});
}

json brief_case_definition() {
  const json criterion = object({{"name", text("gate")}, {"measured", ref("number")}, {"limit", ref("number")}});
  const json output = object({{"xxh128", digest()},
                              {"criteria", {{"type", "array"}, {"items", criterion}, {"maxItems", 1}}},
                              {"metrics", object({{"rel_l2", real("Frobenius-relative error")},
                                                  {"max_ulp", real("largest error in units of the last place")}})}});
  json run = object({{"implementation", text("algorithm, tile, split-k, workspace")}, {"outputs", map_of(output)}});
  run["properties"]["error"] = text("text of the error, if this algorithm failed to run");
  json definition = object({{"id", text("op/params/mode/backend[/inputs][/env], defaults omitted")},
                            {"digest", digest()},
                            {"status", ref("status")},
                            {"runs", list_of(run)}});
  definition["properties"]["reason"] = text("a sentence, for every status but pass");
  return definition;
}

}  // namespace numcheck::report::schema
