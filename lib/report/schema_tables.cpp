#include "report/schema_tables.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "report/schema_builder.hpp"

namespace numcheck::report::schema {

using nlohmann::json;

json override_definition() {
  const json state = object(
      {{"case", digest("of the case")},
       {"status", described(ref("status"), "its verdict")},
       {"observed", texts("precision classes that ran")},
       {"rel_l2", real("largest Frobenius-relative error of the outputs")},
       {"effective_bits", real("smallest number of effective bits of the outputs")},
       {"device_s", real("time on the device, in s; NaN if it was not measured")},
       {"implementation", text("algorithm")},
       {"bits", word({"identical", "differ", nullptr}, "of the outputs, against the base; null: it is the base")}});
  const json row = object({{"op", text("op")},
                           {"mode", text("mode")},
                           {"backend", text("backend")},
                           {"shape", text("parameters")},
                           {"predicted", flag("the arithmetic was modelled: no hardware evidence")},
                           {"inputs", {{"type", "object"}, {"description", "distribution of the inputs"}}},
                           {"base", word({"unset", "0"}, "the state that others are compared with")},
                           {"states", described(map_of(state), "by value of the variable: unset, 0, 1")}});
  return object({{"rows", described(list_of(row), "one for each op, mode, backend and shape")},
                 {"sentences", texts("what the rows say together")}});
}

json causes_definition() {
  return list_of(object({{"cause", text("what is wrong with the runs")},
                         {"op", text("op")},
                         {"backend", text("backend")},
                         {"implementation", text("algorithm and split factor")},
                         {"modes", texts("modes of these cases")},
                         {"cases", count("cases with such runs")},
                         {"runs", count("runs")},
                         {"first", digest("of the first case")},
                         {"first_id", text("identifier of the first case")}}));
}

json precision_map_definition() {
  return list_of(
      object({{"op", text("op")},
              {"mode", text("mode")},
              {"request", text_map("settings that belong to the request: NVIDIA_TF32_OVERRIDE, accumulate")},
              {"backend", text("backend")},
              {"layout", described(map_of({{"type", "boolean"}}), "which operands are transposed")},
              {"expected", text("precision class that the request should give")},
              {"class", text("precision class that ran")},
              {"note", text("what the class leaves out; may be empty")},
              {"border", word({"none", "shape", "algorithm", "unknown"}, "what tells this class from others")},
              {"where", text("condition on the shapes that ran, or the algorithms, that got this class and no other")},
              {"also", texts("other conditions that fit as well")},
              {"cases", count("cases with such runs")},
              {"runs", count("runs")},
              {"smallest", digest("of the smallest case")},
              {"smallest_id", text("identifier of the smallest case")},
              {"smallest_size", real("its size: m n k batch")}}));
}

json library_changes_definition() {
  const json ratio = {{"oneOf", json::array({ref("number"), {{"type", "null"}}})}};
  const json change = object({{"case", digest("of the case under the base")},
                              {"other_case", digest("of the case under the other version")},
                              {"id", text("identifier of the case under the base")},
                              {"elements", count("elements of all outputs")},
                              {"outputs", texts("outputs whose bits changed")},
                              {"of", count("outputs of the case")},
                              {"error_over_limit", described(object({{"base", described(ratio, "of the base")},
                                                                     {"other", described(ratio, "of the other")}}),
                                                             "measured / limit of the tightest gate")}});
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
                           {"changes", described(list_of(change), "smallest cases whose bits changed")},
                           {"reasons", described(list_of(reason), "why cases cannot be compared")}});
  return object({{"rows", described(list_of(row), "one for each op, mode, backend and shape")},
                 {"sentences", texts("what the rows say together")}});
}

json known_issue_properties() {
  json entry = object({{"reason", text("why it is known to fail")}, {"expires", text("date, or empty")}});
  entry["properties"].update({{"cause", text("the cause that is known, if only that one is")},
                              {"error", text("the text in the message of an error or a crash, if only such are known")},
                              {"link", text("where to read more")},
                              {"file", text("file of the entry")},
                              {"line", count("1-based")},
                              {"column", count("1-based, in code points")}});
  json applied = entry;
  applied["properties"]["expired"] = flag("the entry had expired; absent: false");
  return {
      {"xfail", described(std::move(applied), "the entry of known failures that applies")},
      {"expired_issues", described(list_of(std::move(entry)), "other entries that match the case, and had expired")}};
}

json brief_case_definition() {
  json criterion =
      object({{"name", text("gate")}, {"measured", real("the statistic")}, {"limit", real("the most that passes")}});
  criterion["properties"]["about"] =
      described({{"const", "rounding"}}, "the output's own rounding takes up to all of the limit; absent: it does not");
  const json output =
      object({{"xxh128", digest("of the output's bytes")},
              {"criteria",
               {{"type", "array"},
                {"items", criterion},
                {"maxItems", 2},
                {"description",
                 "the tightest gate, and the tightest of those in which the output's own rounding takes up to all of "
                 "the limit"}}},
              {"metrics", described(object({{"rel_l2", real("Frobenius-relative error")},
                                            {"max_ulp", real("largest error in units of the last place")}}),
                                    "two of the full report's metrics")}});
  json run = object({{"implementation", text("algorithm, tile, split-k, workspace")},
                     {"outputs", described(map_of(output), "each output by name")}});
  run["properties"]["error"] = text("text of the error, if this algorithm failed to run");
  run["properties"]["not_told"] = texts("mistakes in the op's formula that these inputs do not show; absent: none");
  json definition = object({{"id", text("op/params/mode/backend[/inputs][/env], defaults omitted")},
                            {"digest", digest("of everything that determines the numbers: what reports are joined by")},
                            {"status", described(ref("status"), "verdict on the case")},
                            {"runs", described(list_of(run), "one for each algorithm that ran")}});
  definition["properties"]["reason"] = text("a sentence, for every status but pass");
  definition["properties"].update(known_issue_properties());
  return definition;
}

}  // namespace numcheck::report::schema
