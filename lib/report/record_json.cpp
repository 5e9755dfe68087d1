#include "report/record_json.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

json norms_json(const metric::ErrorNorms& norms) {
  return {{"max_abs", number(norms.max_abs)}, {"max_rel", number(norms.max_rel)},
          {"l1", number(norms.l1)},           {"l2", number(norms.l2)},
          {"linf", number(norms.linf)},       {"rel_l2", number(norms.rel_l2)},
          {"rms", number(norms.rms)},         {"mean_signed", number(norms.mean_signed)},
          {"nmse", number(norms.nmse)},       {"sqnr_db", number(norms.sqnr_db)},
          {"cosine", number(norms.cosine)}};
}

json metrics_json(const metric::Statistics& s) {
  json metrics = norms_json(s.arithmetic);
  metrics.update({{"elements", s.elements},
                  {"finite", s.finite},
                  {"nonfinite_mismatch", s.nonfinite_mismatch},
                  {"poison", s.poison},
                  {"zeros", s.zeros_got},
                  {"exact_mismatch", s.exact_mismatch},
                  {"expected_constant", s.expected_constant},
                  {"rms_expected", number(s.rms_expected)},
                  {"effective_bits", number(s.effective_bits)},
                  {"max_ulp", number(s.max_ulp)},
                  {"mean_ulp", number(s.mean_ulp)},
                  {"ulp_histogram", s.ulp_histogram},
                  {"max_over_bound", number(s.max_over_bound)},
                  {"z_rms", number(s.z_rms)},
                  {"z_q999", number(s.z_q999)},
                  {"z_max", number(s.z_max)},
                  {"slope", number(s.slope)},
                  {"slope_se", number(s.slope_se)},
                  {"intercept", number(s.intercept)},
                  {"toward_zero", number(s.toward_zero)},
                  {"rounding_elements", s.rounding_elements},
                  {"rounding_ratio", number(s.rounding_ratio)},
                  {"rounding_ratio_perfect", number(s.rounding_ratio_perfect)},
                  {"rounding_sd", number(s.rounding_sd)},
                  {"rounding_arith", number(s.rounding_arith)},
                  {"max_over_half_ulp", number(s.max_over_half_ulp)}});
  return metrics;
}

json opinion_json(const metric::Opinion& opinion) {
  return {{"mismatches", opinion.mismatches}, {"max_excess", number(opinion.max_excess)}};
}

json opinions_json(const metric::Statistics& s, bool with_plan) {
  json opinions = {{"torch_assert_close", opinion_json(s.torch_allclose)},
                   {"numpy_assert_allclose", opinion_json(s.numpy_allclose)},
                   {"te_compare_results", opinion_json(s.te_compare)}};
  if (with_plan) {
    opinions["plan_allclose"] = opinion_json(s.plan_allclose);
  }
  return opinions;
}

json criteria_json(const std::vector<tolerance::Criterion>& criteria) {
  json list = json::array();
  for (const tolerance::Criterion& criterion : criteria) {
    list.push_back({{"name", criterion.name},
                    {"measured", number(criterion.measured)},
                    {"limit", number(criterion.limit)},
                    {"ok", criterion.ok},
                    {"source", criterion.source}});
  }
  return list;
}

const char* outcome_name(tolerance::Fake::Outcome outcome) {
  switch (outcome) {
    case tolerance::Fake::Outcome::rejected:
      return "rejected";
    case tolerance::Fake::Outcome::accepted:
      return "accepted";
    case tolerance::Fake::Outcome::dropped:
      return "dropped";
  }
  return "dropped";
}

json certificate_json(const tolerance::Certificate& certificate) {
  json fakes = json::array();
  for (const tolerance::Fake& fake : certificate.fakes) {
    fakes.push_back({{"name", fake.name}, {"outcome", outcome_name(fake.outcome)}, {"detail", fake.detail}});
  }
  const std::string vacuous = certificate.vacuous_with();
  return {{"vacuous_with", vacuous.empty() ? json() : json(vacuous)}, {"fakes", std::move(fakes)}};
}

/// [row, col], or [batch, row, col] where there are several matrices.
json position(std::int64_t flat, const op::Port& port) {
  const std::int64_t matrix = port.rows * port.cols;
  if (matrix <= 0) {
    return json::array({flat});
  }
  const std::int64_t row = flat % matrix / port.cols;
  const std::int64_t col = flat % port.cols;
  return port.batch == 1 ? json::array({row, col}) : json::array({flat / matrix, row, col});
}

json worst_json(const std::vector<metric::Worst>& worst, const op::Port& port) {
  json list = json::array();
  const int digits = 2 * core::dtype_info(port.dtype).storage_bytes;
  for (const metric::Worst& element : worst) {
    list.push_back({{"index", position(element.index, port)},
                    {"got", number(element.got)},
                    {"got_bits", fmt::format("0x{:0{}x}", element.got_bits, digits)},
                    {"expected", number(element.expected)},
                    {"ulps", number(element.ulps)},
                    {"over_bound", number(element.over_bound)}});
  }
  return list;
}

json findings_json(const std::vector<op::Finding>& findings) {
  json list = json::array();
  for (const op::Finding& finding : findings) {
    list.push_back({{"name", finding.name}, {"measured", number(finding.measured)}, {"text", finding.text}});
  }
  return list;
}

json ideal_json(const verdict::OutputResult& output) {
  return output.ideal.has_value() ? json{{"note", output.ideal_note}, {"error", norms_json(*output.ideal)}} : json();
}

json output_json(const verdict::OutputResult& output, const op::Port& port, bool plan_allclose) {
  const metric::Statistics& s = output.statistics;
  return {{"xxh128", output.digest.hex()},
          {"dtype", core::dtype_info(port.dtype).name},
          {"shape",
           port.batch == 1 ? json::array({port.rows, port.cols}) : json::array({port.batch, port.rows, port.cols})},
          {"sampled", output.sampled},
          {"model", output.model_source},
          {"metrics", metrics_json(s)},
          {"total_error", norms_json(s.total)},
          {"ideal", ideal_json(output)},
          {"criteria", criteria_json(output.criteria)},
          {"findings", findings_json(output.findings)},
          {"error_over_limit", number(tolerance::tightest(output.criteria))},
          {"certificate", certificate_json(output.certificate)},
          {"opinions", opinions_json(s, plan_allclose)},
          {"worst", worst_json(s.worst, port)}};
}

json run_json(const verdict::RunResult& result, const plan::Case& c, const std::vector<op::Port>& ports) {
  const worker::RunReport& run = result.run;
  json details = json::object();
  for (const auto& [key, value] : run.details) {
    details[key] = value;
  }
  json outputs = json::object();
  for (const verdict::OutputResult& output : result.outputs) {
    outputs[output.port] = output_json(output, op::port_named(ports, output.port),
                                       c.tolerance.allclose_rtol.has_value() || c.tolerance.allclose_atol.has_value());
  }
  return {
      {"implementation", run.label},
      {"details", std::move(details)},
      {"workspace_bytes", run.workspace_bytes},
      {"expected_class", result.expected_class},
      {"observed_class", run.observed_class},
      {"deterministic", run.deterministic},
      {"guards", {{"intact", run.guards_intact}, {"inputs_intact", run.inputs_intact}, {"detail", run.guard_detail}}},
      {"device_s", number(run.device_s)},
      {"status", verdict::status_name(result.status)},
      {"failing", result.failing},
      {"error", run.error},
      {"outputs", std::move(outputs)}};
}

json tolerance_json(const plan::ToleranceSpec& spec) {
  json object = json::object();
  const auto put = [&object](const char* key, const std::optional<double>& value) {
    if (value.has_value()) {
      object[key] = number(*value);
    }
  };
  put("allclose_rtol", spec.allclose_rtol);
  put("allclose_atol", spec.allclose_atol);
  put("max_ulp", spec.max_ulp);
  put("rel_l2", spec.rel_l2);
  return object;
}

/// The tightest gate of all runs; null where nothing was compared.
json error_over_limit(const verdict::CaseResult& result) {
  bool any = false;
  double largest = 0;
  for (const verdict::RunResult& run : result.runs) {
    for (const verdict::OutputResult& output : run.outputs) {
      largest = std::max(largest, tolerance::tightest(output.criteria));
      any = any || !output.criteria.empty();
    }
  }
  return any ? number(largest) : json();
}

}  // namespace

nlohmann::json to_json(const verdict::CaseResult& result) {
  const plan::Case& c = *result.c;
  json record = plan::case_to_json(c);
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  json runs = json::array();
  for (const verdict::RunResult& run : result.runs) {
    runs.push_back(run_json(run, c, ports));
  }
  record.update({{"id", c.id},
                 {"digest", c.digest.hex()},
                 {"status", verdict::status_name(result.status)},
                 {"reason", result.reason},
                 {"tags", c.tags},
                 {"tolerance", tolerance_json(c.tolerance)},
                 {"runs", std::move(runs)},
                 {"error_over_limit", error_over_limit(result)},
                 {"time_s",
                  {{"inputs", number(result.times.inputs_s)},
                   {"device", number(result.times.device_s)},
                   {"reference", number(result.times.reference_s)},
                   {"comparison", number(result.times.comparison_s)},
                   {"yardsticks", number(result.times.yardsticks_s)}}}});
  if (c.xfail.has_value()) {
    record["xfail"] = {{"reason", c.xfail->reason}, {"expires", c.xfail->expires}};
  }
  return record;
}

}  // namespace numcheck::report
