#include "report/views/console.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/report.hpp"
#include "report/report_text.hpp"
#include "report/views/console_format.hpp"
#include "report/views/text_table.hpp"
#include "sample_record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using testing::sample_case;
using testing::sample_result;

json sample_report(bool simulated, std::size_t failures) {
  RunFacts facts;
  facts.tool = {"0.1.0", "a1b2c3d", false, {"run", "plan.json"}};
  facts.plan = {.name = "sample", .digest = "xxh128:0", .seed = 7, .selected = 2, .expanded = 2};
  facts.device =
      machine::Device{.name = "NVIDIA H200", .sm = 90, .simulated = simulated, .driver = simulated ? "" : "580.65"};
  facts.times.wall_s = 1.5;
  std::vector<json> cases;
  const plan::Case good = sample_case("bf16", 64);
  cases.push_back(to_json(sample_result(good, {{.observed = ""}})));
  for (std::size_t i = 0; i < failures; ++i) {
    const plan::Case bad = sample_case("fp32", 64 + static_cast<std::int64_t>(i));
    json record = to_json(sample_result(bad, {{.measured = 5.8, .limit = 3}}));
    record["reproduce"] = "te-numcheck run plan.json --case " + bad.digest.short_hex();
    cases.push_back(std::move(record));
  }
  return make_report(facts, cases);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Report, is_written_by_many_threads_as_by_one) {
  json report = sample_report(true, 600);
  report["notes"] = json::array({"a line\nbroken, a quote \" and \xff", json::object(), json::array()});
  report["empty"] = json::array();
  EXPECT_EQ(report_text(report), report.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

TEST(Report, notes_appear_only_if_there_are_any_and_name_no_folder) {
  RunFacts facts;
  EXPECT_FALSE(make_report(facts, {}).contains("notes"));
  facts.notes = {"a worker was replaced: /home/somebody/libx.so failed"};
  const json notes = make_report(facts, {}).at("notes");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].get<std::string>().find("somebody"), std::string::npos) << notes[0];
}

TEST(Console, a_simulated_run_says_so_above_and_below_and_when_quiet) {
  const std::string words = "SIMULATED sm_90: no hardware evidence";
  const json report = sample_report(true, 0);
  const std::string text = views::render_console(report, {});
  const std::size_t first = text.find(words);
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(text.find(words, first + 1), std::string::npos) << "also in the summary line";
  EXPECT_TRUE(has(views::render_console(report, {.verbosity = -1}), words));
  EXPECT_FALSE(has(views::render_console(sample_report(false, 0), {}), "SIMULATED"));
}

TEST(Console, a_failure_has_gate_worst_element_and_reproducer) {
  const std::string text = views::render_console(sample_report(false, 1), {});
  EXPECT_TRUE(has(text, "FAIL  gemm/m=8,n=4,k=64/fp32/cublaslt   #")) << text;
  EXPECT_TRUE(has(text, "d: G2 spread 5.8 > 3  (gemm/fp32 on sm_90)")) << text;
  EXPECT_TRUE(has(text, "worst at [3,1]: got 1.0078125 (0x3f810000)  expected 1.000244140625  12.0 ULP")) << text;
  EXPECT_TRUE(has(text, "run again: te-numcheck run plan.json --case ")) << text;
  EXPECT_TRUE(has(text, "2 cases: 1 pass, 1 fail    1.5 s")) << text;
}

TEST(Console, a_failure_shows_the_run_that_failed) {
  json report = sample_report(false, 0);
  const plan::Case bad = sample_case("fp32", 64);
  verdict::CaseResult result =
      sample_result(bad, {{.label = "algo 1"}, {.label = "algo 2", .measured = 5.8, .limit = 3}});
  result.runs.front().status = verdict::Status::inconclusive;
  report["cases"].push_back(to_json(result));
  const std::string text = views::render_console(report, {});
  EXPECT_TRUE(has(text, "      algo 2  (1 of 2 algorithms fails)\n      d: G2 spread 5.8 > 3")) << text;
}

/// Appends hostile text to every string in a value.
void poison(json& value, const std::string& text) {
  if (value.is_string()) {
    value = value.get<std::string>() + text;
  } else if (value.is_structured()) {
    for (json& item : value) {
      poison(item, text);
    }
  }
}

TEST(Console, text_from_a_report_adds_no_lines_or_control_characters) {
  const std::string hostile = "\n::error::x\x1b[2J\x7f\xC2\x9B\xE2\x80\xAE\xFF";
  json report = sample_report(false, 2);
  const std::string clean = views::render_console(report, {.width = 0, .verbosity = 2});
  for (json& record : report["cases"]) {
    for (const char* member : {"id", "op", "mode", "backend", "reason", "reproduce"}) {
      if (record.contains(member)) {
        poison(record[member], hostile);
      }
    }
    poison(record["runs"][0]["implementation"], hostile);
    poison(record["runs"][0]["failing"], hostile);
    json& outputs = record["runs"][0]["outputs"];
    outputs = {{"d" + hostile, outputs.at("d")}};
    poison(outputs.front().at("worst"), hostile);
    poison(outputs.front().at("findings"), hostile);
  }
  for (const char* part : {"tool", "plan", "machine", "environment"}) {
    poison(report[part], hostile);
  }
  report["environment"]["A" + hostile] = hostile;
  const std::string text = views::render_console(report, {.width = 0, .verbosity = 2, .report_path = "r" + hostile});
  EXPECT_LE(std::ranges::count(text, '\n'), std::ranges::count(clean, '\n') + 12) << "reasons and variables are shown";
  EXPECT_EQ(text.find("\n::"), std::string::npos);
  for (const std::string bad : {"\x1b", "\x7f", "\xC2\x9B", "\xE2\x80\xAE", "\xFF"}) {
    EXPECT_EQ(text.find(bad), std::string::npos) << text;
  }
  EXPECT_TRUE(has(text, "\\n::error::x\\x1b[2J\\x7f\\u{9b}\\u{202e}\\xff")) << text;
}

TEST(Console, quiet_is_one_line) {
  const std::string text =
      views::render_console(sample_report(false, 1), {.verbosity = -1, .report_path = "out/report.json"});
  EXPECT_EQ(text, "2 cases: 1 pass, 1 fail    1.5 s    report: out/report.json\n");
}

TEST(Console, verbose_lists_every_case_and_very_verbose_its_metrics) {
  const json report = sample_report(false, 1);
  EXPECT_FALSE(has(views::render_console(report, {}), "PASS"));
  EXPECT_TRUE(has(views::render_console(report, {.verbosity = 1}), "PASS"));
  EXPECT_FALSE(has(views::render_console(report, {.verbosity = 1}), "eff. bits"));
  const std::string very = views::render_console(report, {.verbosity = 2});
  EXPECT_TRUE(has(very, "eff. bits 20.5"));
  EXPECT_TRUE(has(very, "stages (sums over cases; they overlap):"));
}

TEST(Console, very_verbose_says_which_algorithms_have_the_same_bits) {
  json report = sample_report(false, 0);
  const plan::Case c = sample_case("fp32", 64);
  report["cases"].push_back(to_json(
      sample_result(c, {{.label = "grouped"}, {.label = "one by one"}, {.label = "another", .bits = "other bits"}})));
  const std::string text = views::render_console(report, {.verbosity = 2});
  const auto line = [&text](const std::string& from) {
    return text.substr(text.find(from), text.find('\n', text.find(from)) - text.find(from));
  };
  EXPECT_TRUE(has(line("        one by one"), "same bits as grouped")) << text;
  EXPECT_FALSE(has(line("        another"), "same bits")) << text;
  EXPECT_FALSE(has(line("        grouped"), "same bits")) << text;
}

TEST(Console, has_colour_only_when_asked_and_never_alone) {
  const json report = sample_report(true, 1);
  const std::string plain = views::render_console(report, {.verbosity = 2});
  EXPECT_FALSE(has(plain, "\x1b"));
  std::string coloured = views::render_console(report, {.colour = true, .verbosity = 2});
  EXPECT_TRUE(has(coloured, "\x1b["));
  for (std::size_t at = coloured.find('\x1b'); at != std::string::npos; at = coloured.find('\x1b')) {
    coloured.erase(at, coloured.find('m', at) - at + 1);
  }
  EXPECT_EQ(coloured, plain) << "without its escapes it is the same text";
}

TEST(Console, set_variables_are_in_the_header) {
  json report = sample_report(false, 0);
  report["environment"] = {{"NVIDIA_TF32_OVERRIDE", "1"}, {"CUBLAS_WORKSPACE_CONFIG", nullptr}};
  const std::string text = views::render_header(report, {});
  EXPECT_TRUE(has(text, "NVIDIA_TF32_OVERRIDE=1"));
  EXPECT_FALSE(has(text, "CUBLAS_WORKSPACE_CONFIG"));
}

TEST(Console, reasons_of_cases_that_did_not_run_are_grouped) {
  json report = sample_report(false, 0);
  json other = report["cases"][0];
  other["status"] = "unsupported";
  other["reason"] = "needs sm_100";
  report["cases"].push_back(other);
  report["cases"].push_back(other);
  EXPECT_EQ(views::render_notes(report, {}), "    2 unsupported: needs sm_100\n");
}

TEST(Console, lines_are_cut_to_the_width_of_the_terminal_if_possible) {
  json report = sample_report(false, 1);
  for (json& record : report["cases"]) {
    record["id"] =
        "gemm/m=123456,n=123456,k=123456,b=17,ta=1,tb=1,alpha=0.3333333333,beta=1,bias=1,epi=gelu/fp32/cublaslt";
  }
  for (const std::string& part :
       {views::render_groups(report, {.width = 90}), views::render_cases(report, {.width = 90, .verbosity = 1})}) {
    std::size_t start = 0;
    while (start < part.size()) {
      const std::size_t end = part.find('\n', start);
      EXPECT_LE(views::display_width(part.substr(start, end - start)), 90u) << part;
      start = end + 1;
    }
  }
}

TEST(Console, an_empty_report_is_still_a_report) {
  RunFacts facts;
  const std::string text = views::render_console(make_report(facts, {}), {.verbosity = 2});
  EXPECT_TRUE(has(text, "no device"));
  EXPECT_TRUE(has(text, "0 cases"));
}

TEST(Console, override_table_shows_states_classes_and_sentences) {
  const plan::Case unset = sample_case("fp32", 64, {{"NVIDIA_TF32_OVERRIDE", std::nullopt}});
  const plan::Case one = sample_case("fp32", 64, {{"NVIDIA_TF32_OVERRIDE", "1"}});
  const json report = make_report(RunFacts{}, {to_json(sample_result(unset, {{.bits = "a"}})),
                                               to_json(sample_result(one, {{.bits = "b", .observed = "tf32_rne"}}))});
  const std::string text = views::render_override(report, {});
  EXPECT_TRUE(has(text, "bits differ")) << text;
  EXPECT_TRUE(has(text, "TF32")) << text;
  EXPECT_TRUE(has(text, "override 1 turns FP32 into TF32")) << text;
  EXPECT_FALSE(has(text, "predicted")) << text;
  EXPECT_EQ(views::render_override(sample_report(false, 0), {}), "");
}

TEST(Console, override_table_has_predictions_apart) {
  std::vector<json> records;
  for (const char* backend : {"cublaslt", "sim"}) {
    for (const std::optional<std::string>& value : {std::optional<std::string>(), std::optional<std::string>("1")}) {
      records.push_back(to_json(sample_result(sample_case("fp32", 64, {{"NVIDIA_TF32_OVERRIDE", value}}), {{}})));
      records.back()["backend"] = backend;
    }
  }
  const std::string text = views::render_override(make_report(RunFacts{}, records), {});
  const std::size_t predicted = text.find("as predicted by modelled arithmetic: no hardware evidence");
  ASSERT_NE(predicted, std::string::npos) << text;
  EXPECT_GT(text.find("fp32"), 0u);
  EXPECT_LT(text.find("fp32"), predicted) << "measured rows come first: " << text;
  EXPECT_TRUE(has(text, "gemm fp32 (cublaslt): ")) << text;
  EXPECT_TRUE(has(text, "gemm fp32 (sim, predicted): ")) << text;
}

TEST(CutMiddle, keeps_both_ends_and_the_width) {
  EXPECT_EQ(views::cut_middle("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(views::cut_middle("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(views::display_width(views::cut_middle("äöüßäöüßäöüß", 7)), 7u);
}

TEST(HumanTime, picks_the_unit) {
  EXPECT_EQ(views::human_time(0), "-");
  EXPECT_EQ(views::human_time(12.34e-6), "12.3 us");
  EXPECT_EQ(views::human_time(0.0041), "4.1 ms");
  EXPECT_EQ(views::human_time(41), "41 s");
  EXPECT_EQ(views::human_time(200), "3 min 20 s");
  EXPECT_EQ(views::human_time(std::nan("")), "-");
}

TEST(RatioText, drops_insignificant_digits) {
  EXPECT_EQ(ratio_text(0.314), "0.31");
  EXPECT_EQ(ratio_text(59163.0), "5.92e+04");
  EXPECT_EQ(ratio_text("Infinity"), "no ratio");
}

TEST(ParametersOf, leaves_out_op_mode_and_backend) {
  EXPECT_EQ(views::parameters_of("gemm/m=1,n=2/fp32/sim"), "m=1,n=2");
  EXPECT_EQ(views::parameters_of("gemm/m=1,n=2/fp32/sim/exact/seed=7"), "m=1,n=2/exact/seed=7");
}

}  // namespace
}  // namespace numcheck::report
