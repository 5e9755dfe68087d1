#include "report/output_members.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "report/criterion.hpp"
#include "report/finding_members.hpp"
#include "report/metric_members.hpp"
#include "report/picture_members.hpp"
#include "report/wrong_member.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using namespace schema;

const char* outcome_name(tolerance::Fake::Outcome outcome) {
  switch (outcome) {
    case tolerance::Fake::Outcome::rejected:
      return "rejected";
    case tolerance::Fake::Outcome::accepted:
      return "accepted";
    case tolerance::Fake::Outcome::dropped:
      return "dropped";
    case tolerance::Fake::Outcome::not_told:
      return "not_told";
  }
  return "dropped";
}

json shape_json(const op::Port& port) {
  return port.batch == 1 ? json::array({port.rows, port.cols}) : json::array({port.batch, port.rows, port.cols});
}

const Members<tolerance::Criterion>& criterion_members() {
  using tolerance::Criterion;
  static const Members<Criterion> members = {
      {"name", text("gate"), &at<&Criterion::name>},
      {"measured", real("the statistic; te-numcheck explain gates"), &at<&Criterion::measured>},
      {"limit", real("the most that passes"), &at<&Criterion::limit>},
      {"ok", flag("measured <= limit"), &at<&Criterion::ok>},
      {"source", text("where the limit comes from"), &at<&Criterion::source>}};
  return members;
}

/// Most gates are about errors; only the others say what they are about.
json criterion_rule() {
  json rule = rule_of(criterion_members());
  rule["properties"]["about"] = {{"enum", {"errors", "rounding", "pattern", "unwritten", "conduct", "repetition"}},
                                 {"description",
                                  "what the gate is about: errors (if absent); errors whose limit has half an ulp of a "
                                  "16- or 8-bit output for its "
                                  "rounding; NaN and infinities; elements that were not written; how the run behaved; "
                                  "whether it repeats"}};
  return rule;
}

json criteria_json(const OutputSource& source) {
  json list = json::array();
  for (const tolerance::Criterion& criterion : source.output->criteria) {
    json& object = list.emplace_back(object_of(criterion_members(), criterion));
    if (criterion.about != tolerance::Criterion::About::errors) {
      object["about"] = about_name(criterion.about);
    }
  }
  return list;
}

const Members<tolerance::Fake>& fake_members() {
  using tolerance::Fake;
  static const Members<Fake> members = {
      {"name", text("what was put in place of the output"), &at<&Fake::name>},
      {"outcome",
       word({"rejected", "accepted", "dropped", "not_told"},
            "whether the gates reject it; dropped: it was not judged; not_told: a mistake in the op's formula that "
            "these "
            "inputs do not show"),
       [](const Fake& fake) { return json(outcome_name(fake.outcome)); }},
      {"detail", text("gate that rejected it, why it was dropped, or what cannot be told from what"),
       &at<&Fake::detail>}};
  return members;
}

const Members<tolerance::Certificate>& certificate_members() {
  using tolerance::Certificate;
  static const Members<Certificate> members = {
      {"vacuous_with", text_or_null("fake that would also have passed"),
       [](const Certificate& certificate) {
         const std::string vacuous = certificate.vacuous_with();
         return vacuous.empty() ? json() : json(vacuous);
       }},
      {"fakes", described(list_of(rule_of(fake_members())), "wrong outputs that the gates were tried on"),
       [](const Certificate& certificate) { return list_of(fake_members(), certificate.fakes); }}};
  return members;
}

const Members<metric::Opinion>& opinion_members() {
  using metric::Opinion;
  static const Members<Opinion> members = {
      {"mismatches", count("elements beyond the limit"), &at<&Opinion::mismatches>},
      {"max_excess", real("largest error over the limit of that comparison"), &at<&Opinion::max_excess>}};
  return members;
}

bool has_allclose(const plan::ToleranceSpec& plan) {
  return plan.allclose_rtol.has_value() || plan.allclose_atol.has_value();
}

json real_or_null(const char* description) {
  return {{"description", description}, {"anyOf", json::array({{{"type", "null"}}, ref("number")})}};
}

json number_unless_0(double value) {
  return value == 0 ? json() : number(value);
}

const Members<OutputSource>& plan_tolerance_members() {
  using S = OutputSource;
  static const Members<S> members = {
      {"limit_over_bound",
       real_or_null(
           "the smallest limit of \"allclose\" in error bounds; above 10 it accepts what no correct kernel does; "
           "null if the plan has none"),
       [](const S& s) { return has_allclose(*s.plan) ? number(s.output->statistics.plan_limit_over_bound) : json(); }},
      {"ulp_over_bound",
       real_or_null(
           "\"ulp\" over the largest error bound in ulps, likewise; null of outputs that are defined bit for bit, "
           "too, or no \"allclose\""),
       [](const S& s) { return number_unless_0(s.output->statistics.plan_ulp_over_bound); }},
      {"rel_l2_over_bound",
       real_or_null(
           "\"rel_l2\" over the largest one within the error bound, likewise; null of outputs that are defined bit "
           "for bit, too"),
       [](const S& s) { return number_unless_0(s.output->statistics.plan_rel_l2_over_bound); }},
      {"atol_over_ulp",
       real("the atol of \"allclose\" in ulps of a typical output; below 1 it refuses correct rounding; Infinity if it "
            "has an rtol, "
            "too"),
       [](const S& s) {
         const bool is_absolute = s.plan->allclose_rtol.value_or(0) == 0 && s.plan->allclose_atol.value_or(0) > 0;
         return number(is_absolute ? s.output->statistics.plan_atol_over_ulp : std::numeric_limits<double>::infinity());
       }}};
  return members;
}

json opinions_json(const OutputSource& source) {
  const metric::Statistics& s = source.output->statistics;
  json opinions = {{"torch_assert_close", object_of(opinion_members(), s.torch_allclose)},
                   {"numpy_assert_allclose", object_of(opinion_members(), s.numpy_allclose)},
                   {"te_compare_results", object_of(opinion_members(), s.te_compare)}};
  if (source.plan != nullptr && has_allclose(*source.plan)) {
    opinions["plan_allclose"] = object_of(opinion_members(), s.plan_allclose);
  }
  return opinions;
}

/// One of the worst elements, with its port.
struct WorstSource {
  const metric::Worst* worst;
  const op::Port* port;
};

const Members<WorstSource>& worst_members() {
  static const Members<WorstSource> members = {
      {"index", described(list_of(count("position")), "batch (if several), row, column; from 0"),
       [](const WorstSource& s) { return position(s.worst->index, *s.port); }},
      {"got", real("what the device returned"), [](const WorstSource& s) { return number(s.worst->got); }},
      {"got_bits",
       {{"type", "string"}, {"pattern", "^0x[0-9a-f]+$"}, {"description", "its bits in the output's format"}},
       [](const WorstSource& s) {
         const int digits = 2 * core::dtype_info(s.port->dtype).storage_bytes;
         return json(fmt::format("0x{:0{}x}", s.worst->got_bits, digits));
       }},
      {"expected", real("reference in double"), [](const WorstSource& s) { return number(s.worst->expected); }},
      {"ulps", real("error in units of the last place of the output"),
       [](const WorstSource& s) { return number(s.worst->ulps); }},
      {"over_bound", real("error over its bound"), [](const WorstSource& s) { return number(s.worst->over_bound); }}};
  return members;
}

json worst_json(const OutputSource& source) {
  json list = json::array();
  for (const metric::Worst& worst : source.output->statistics.worst) {
    list.push_back(object_of(worst_members(), WorstSource{&worst, source.port}));
  }
  return list;
}

/// Requires OutputResult::judged.
const Members<verdict::OutputResult>& judged_members() {
  using verdict::OutputResult;
  static const Members<OutputResult> members = {
      {"note", text("what it is against"), &at<&OutputResult::judged_note>},
      {"error", described(rule_of(norm_members()), "norms of that error"),
       [](const OutputResult& output) { return object_of(norm_members(), *output.judged); }}};
  return members;
}

/// Requires OutputResult::ideal.
const Members<verdict::OutputResult>& ideal_members() {
  using verdict::OutputResult;
  static const Members<OutputResult> members = {
      {"note", text("which rounding or pass that is"), &at<&OutputResult::ideal_note>},
      {"error", described(rule_of(norm_members()), "norms of that error"),
       [](const OutputResult& output) { return object_of(norm_members(), *output.ideal); }}};
  return members;
}

}  // namespace

nlohmann::json position(std::int64_t flat, const op::Port& port) {
  const std::int64_t matrix = port.rows * port.cols;
  if (matrix <= 0) {
    return json::array({flat});
  }
  const std::int64_t row = flat % matrix / port.cols;
  const std::int64_t col = flat % port.cols;
  return port.batch == 1 ? json::array({row, col}) : json::array({flat / matrix, row, col});
}

namespace {

bool has_wrong_numbers(const verdict::OutputResult& output) {
  return std::ranges::any_of(output.criteria, [](const tolerance::Criterion& criterion) {
    return !criterion.ok && !tolerance::is_conduct(criterion.about);
  });
}

const Members<OutputSource>& output_members() {
  using S = OutputSource;
  static const Members<S> members = {
      {"xxh128", digest("of the output's bytes: equal bits have equal digests"),
       [](const S& s) { return json(s.output->digest.hex()); }},
      {"dtype", text("storage format"), [](const S& s) { return json(core::dtype_info(s.port->dtype).name); }},
      {"shape", described(list_of(count("elements")), "batch (if several), rows, columns"),
       [](const S& s) { return shape_json(*s.port); }},
      {"sampled", flag("only a sample of the elements was compared"),
       [](const S& s) { return json(s.output->sampled); }},
      {"model", text("error model that the limits come from"), [](const S& s) { return json(s.output->model_source); }},
      {"metrics",
       described(ref("metrics"),
                 "the arithmetic error, which is judged unless there is a judged_error: against the inputs as rounded "
                 "to the format"),
       [](const S& s) {
         json metrics = object_of(norm_members(), s.output->statistics.arithmetic);
         metrics.update(object_of(statistics_members(), s.output->statistics));
         return metrics;
       }},
      {"total_error",
       described(rule_of(norm_members()), "norms of the error against the unrounded inputs, which is not judged"),
       [](const S& s) { return object_of(norm_members(), s.output->statistics.total); }},
      {"judged_error",
       {{"description",
         "the error that is judged, where it is not that of `metrics`: of a product whose FP32 operands the run "
         "converted "
         "in a known way, against the product of the converted ones; else null"},
        {"anyOf", json::array({{{"type", "null"}}, rule_of(judged_members())})}},
       [](const S& s) { return s.output->judged.has_value() ? object_of(judged_members(), *s.output) : json(); }},
      {"ideal",
       {{"description",
         "error against exact real arithmetic, where the op as implemented rounds or runs a pass in between; else "
         "null"},
        {"anyOf", json::array({{{"type", "null"}}, rule_of(ideal_members())})}},
       [](const S& s) { return s.output->ideal.has_value() ? object_of(ideal_members(), *s.output) : json(); }},
      {"criteria",
       described(list_of(criterion_rule()), "the gates, in order; the first that is not ok names the failure"),
       &criteria_json},
      {"findings", described(list_of(finding_rule()), "statistics of the op's own, and causes of a failure"),
       [](const S& s) { return findings_json(s.output->findings); }},
      {"error_over_limit", real("measured / limit of the tightest gate"),
       [](const S& s) { return number(tolerance::tightest(s.output->criteria)); }},
      {"certificate", described(rule_of(certificate_members()), "whether passing proves something"),
       [](const S& s) { return object_of(certificate_members(), s.output->certificate); }},
      {"opinions", described(map_of(rule_of(opinion_members())), "what comparisons of other tools would have said"),
       &opinions_json},
      {"plan_tolerance",
       {{"description", "how sensible the plan's own limits are; null if it has none"},
        {"anyOf", json::array({{{"type", "null"}}, rule_of(plan_tolerance_members())})}},
       [](const S& s) { return s.plan != nullptr ? object_of(plan_tolerance_members(), s) : json(); }},
      {"worst", described(list_of(rule_of(worst_members())), "at most 5 elements, largest error over bound first"),
       &worst_json}};
  return members;
}

}  // namespace

nlohmann::json output_rule() {
  json rule = rule_of(output_members());
  rule["properties"]["wrong"] = wrong_rule();
  rule["properties"].update(picture_properties());
  rule["properties"]["declared"] =
      text("what the backend declares and thereby explains the errors; only of an output that ends as a warning");
  return rule;
}

nlohmann::json output_json(const OutputSource& source) {
  json object = object_of(output_members(), source);
  if (!source.output->declared.empty()) {
    object["declared"] = source.output->declared;
  }
  if (source.output->wrong.has_value() && (object.contains("declared") || has_wrong_numbers(*source.output))) {
    object["wrong"] = wrong_json(*source.output->wrong);
  }
  if (source.output->picture.has_value()) {
    object.update(picture_json(*source.output->picture, *source.port));
  }
  return object;
}

}  // namespace numcheck::report
