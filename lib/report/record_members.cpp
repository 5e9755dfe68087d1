#include "report/record_members.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "report/output_members.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using namespace schema;

const Members<worker::RunReport>& guard_members() {
  using worker::RunReport;
  static const Members<RunReport> members = {
      {"intact", flag("no guard byte was written"), &at<&RunReport::guards_intact>},
      {"inputs_intact", flag("inputs hash as before"), &at<&RunReport::inputs_intact>},
      {"detail", text("which guard, and where"), &at<&RunReport::guard_detail>}};
  return members;
}

/// A tensor's declared and observed format.
const Members<verdict::PortFormat>& format_members() {
  using verdict::PortFormat;
  static const Members<PortFormat> members = {
      {"declared", text("format that it is stored in"),
       [](const PortFormat& f) { return json(core::dtype_info(f.declared).name); }},
      {"observed",
       text("shortest of fp8_e5m2, fp8_e4m3, bf16, fp16, tf32 and the declared format that holds all that was seen; "
            "empty "
            "if there was nothing but zeros, infinities and NaN"),
       [](const PortFormat& f) { return json(f.observed ? core::dtype_info(*f.observed).name : std::string_view()); }},
      {"below_bf16",
       real("share of these numbers that BF16 does not hold, because they have bits below its eight: the effective "
            "storage "
            "precision of FP32 parameters"),
       [](const PortFormat& f) { return number(f.below_bf16); }},
      {"seen", count("finite numbers, not 0, that were looked at: of up to 65536 elements"), &at<&PortFormat::seen>}};
  return members;
}

json formats_json(const RunSource& source) {
  json formats = json::object();
  for (const verdict::PortFormat& format : source.result->formats) {
    formats[format.port] = object_of(format_members(), format);
  }
  return formats;
}

json details_json(const worker::RunReport& run) {
  json details = json::object();
  for (const auto& [key, value] : run.details) {
    details[key] = value;
  }
  return details;
}

json outputs_json(const RunSource& source) {
  json outputs = json::object();
  for (const verdict::OutputResult& output : source.result->outputs) {
    outputs[output.port] = output_json({&output, &op::port_named(*source.ports, output.port), source.plan});
  }
  return outputs;
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
  put("min_judged", spec.min_judged);
  for (const plan::StatisticLimit& limit : spec.statistics) {
    json& limits = object["statistics"][limit.name] = json::object();
    if (limit.least) {
      limits["least"] = number(*limit.least);
    }
    if (limit.most) {
      limits["most"] = number(*limit.most);
    }
  }
  return object;
}

/// Measured / limit of the tightest gate of all runs; null if nothing was compared.
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

bool has_same_bits(const verdict::RunResult& a, const verdict::RunResult& b) {
  return !a.outputs.empty() &&
         std::ranges::equal(a.outputs, b.outputs, {}, &verdict::OutputResult::digest, &verdict::OutputResult::digest);
}

json runs_json(const verdict::CaseResult& result) {
  const plan::Case& c = *result.c;
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  const plan::ToleranceSpec& own = c.tolerance;
  const bool has_limits = own.allclose_rtol || own.allclose_atol || own.max_ulp || own.rel_l2;
  json runs = json::array();
  for (const verdict::RunResult& run : result.runs) {
    runs.push_back(object_of(run_members(), RunSource{&run, &ports, has_limits ? &own : nullptr}));
    if (run.run.fault_unseen) {
      runs.back()["fault_changed_nothing"] = true;
    }
    const auto earlier =
        std::find_if(result.runs.data(), &run, [&run](const auto& other) { return has_same_bits(other, run); });
    if (earlier != &run) {
      runs.back()["same_bits_as"] = earlier->run.label;
    }
  }
  return runs;
}

}  // namespace

json run_rule() {
  json rule = rule_of(run_members());
  rule["properties"]["fault_changed_nothing"] = flag(
      "a fault was planted (--inject), and changed nothing: outputs, guards and inputs are as without it; absent: no");
  rule["properties"]["same_bits_as"] =
      text("the first algorithm before this one whose outputs are the same, bit for bit; absent: none");
  return rule;
}

const Members<RunSource>& run_members() {
  using S = RunSource;
  static const Members<S> members = {
      {"implementation", text("algorithm, tile, split-k, workspace"),
       [](const S& s) { return json(s.result->run.label); }},
      {"details", text_map("what the backend says about the algorithm: schedule, tile, evidence"),
       [](const S& s) { return details_json(s.result->run); }},
      {"workspace_bytes", count("workspace that the algorithm asked for, in bytes"),
       [](const S& s) { return json(s.result->run.workspace_bytes); }},
      {"expected_class", text("precision class that the request should give"),
       [](const S& s) { return json(model::class_name(s.result->expected_class)); }},
      {"observed_class", text("precision class that ran; empty if it was not classified"),
       [](const S& s) {
         const auto& observed = s.result->run.observed;
         return json(observed ? model::class_name(*observed) : "");
       }},
      {"deterministic", flag("all repetitions gave the same bits"),
       [](const S& s) { return json(s.result->run.deterministic()); }},
      {"guards", described(rule_of(guard_members()), "memory around and behind the outputs and inputs after the run"),
       [](const S& s) { return object_of(guard_members(), s.result->run); }},
      {"device_s", real("time of one run on the device, in s; NaN if it was not measured"),
       [](const S& s) { return number(s.result->run.device_s); }},
      {"status", described(ref("status"), "status of this run"),
       [](const S& s) { return json(verdict::status_name(s.result->status)); }},
      {"failing", text("first failing gate"), [](const S& s) { return json(s.result->failing); }},
      {"not_told",
       texts("mistakes in the op's formula that these inputs do not show: \"epsilon from ten times epsilon\""),
       [](const S& s) { return json(s.result->not_told); }},
      {"formats",
       described(map_of(rule_of(format_members())),
                 "which formats its tensors of floating-point numbers need, by port"),
       &formats_json},
      {"error", text("text of the error, if this algorithm failed to run"),
       [](const S& s) { return json(s.result->run.error); }},
      {"outputs", described(map_of(ref("output")), "each output by name, compared with the reference"), &outputs_json}};
  return members;
}

const Members<verdict::CaseResult>& case_members() {
  using S = verdict::CaseResult;
  static const Members<S> members = {
      {"id", text("op/params/mode/backend[/inputs][/env], defaults omitted"), [](const S& s) { return json(s.c->id); }},
      {"digest", digest("of everything that determines the numbers: what reports are joined by"),
       [](const S& s) { return json(s.c->digest.hex()); }},
      {"status", described(ref("status"), "verdict on the case: te-numcheck explain statuses"),
       [](const S& s) { return json(verdict::status_name(s.status)); }},
      {"reason", text("a sentence, for every status but pass"), &at<&S::reason>},
      {"tags", texts("tags that the plan gives the case"), [](const S& s) { return json(s.c->tags); }},
      {"tolerance",
       described(map_of(ref("number")), "limits that the plan adds to the gates, and the share that must be judged"),
       [](const S& s) { return tolerance_json(s.c->tolerance); }},
      {"runs", described(list_of(ref("run")), "one for each algorithm that ran"), &runs_json},
      {"error_over_limit",
       described({{"oneOf", json::array({ref("number"), {{"type", "null"}}})}},
                 "measured / limit of the tightest gate of all runs: 1 is at the limit; null if nothing was compared"),
       &error_over_limit},
      {"time_s", described(rule_of(stage_members()), "times of the stages, in s; stages that cases share count once"),
       [](const S& s) { return object_of(stage_members(), s.times); }}};
  return members;
}

const Members<prepare::StageTimes>& stage_members() {
  using prepare::StageTimes;
  static const Members<StageTimes> members = {
      {"inputs", real("drawing the inputs, in s"), &at<&StageTimes::inputs_s>},
      {"device", real("running on the device, in s"), &at<&StageTimes::device_s>},
      {"reference", real("computing the reference, in s"), &at<&StageTimes::reference_s>},
      {"yardsticks", real("computing bounds and variances, in s"), &at<&StageTimes::yardsticks_s>},
      {"comparison", real("comparing and judging, in s"), &at<&StageTimes::comparison_s>}};
  return members;
}

}  // namespace numcheck::report
