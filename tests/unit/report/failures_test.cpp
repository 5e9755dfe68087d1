// What the console says about failures and warnings: which elements, which gates, which kinds.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/criterion.hpp"
#include "report/failure_groups.hpp"
#include "report/report.hpp"
#include "report/views/console.hpp"
#include "report/views/console_output.hpp"
#include "report/views/wrong_sentence.hpp"
#include "report/wrong_member.hpp"
#include "sample_record.hpp"
#include "tolerance/criterion_words.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using testing::sample_case;
using testing::sample_result;
using tolerance::Criterion;
using verdict::Status;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A failed case with these gates.
json failed(std::int64_t k, std::vector<Criterion> criteria) {
  const plan::Case c = sample_case("fp32", k);
  verdict::CaseResult result = sample_result(c, {{.measured = 5.8, .limit = 3}});
  result.runs[0].outputs[0].criteria = std::move(criteria);
  json record = to_json(result);
  record["reproduce"] = fmt::format("te-numcheck run plan.json --case {}", k);
  return record;
}

json class_failure(std::int64_t k) {
  json record = failed(k, {{"class", 1, 0, false, "expected fp32, observed tf32_rne", Criterion::About::conduct}});
  record["runs"][0]["observed_class"] = "tf32_rne";
  return record;
}

json report_of(std::vector<json> cases) {
  return make_report(RunFacts{}, std::move(cases));
}

TEST(CriterionWords, name_what_was_found_and_no_ratio_where_nothing_is_allowed) {
  using tolerance::words_of;
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  EXPECT_EQ(words_of({"G2 rms", 5.8, 3, false, ""}), "G2 rms 5.8 > 3");
  EXPECT_EQ(words_of({"class", 1, 0, false, "expected fp32, observed tf32_rne", Criterion::About::conduct}),
            "class: expected fp32, observed tf32_rne");
  EXPECT_EQ(words_of({"G0 pattern", 1, 0, false, "", Criterion::About::pattern}), "G0 pattern: 1 element");
  EXPECT_EQ(words_of({"G0 unwritten", 4096, 0, false, "", Criterion::About::unwritten}), "G0 unwritten: 4096 elements");
  EXPECT_EQ(words_of({"exact", 2, 0, false, ""}), "exact 2, must be 0");
  EXPECT_EQ(words_of({"G2 rms", nan, 3, false, ""}), "G2 rms is not a number; at most 3 is allowed");
  EXPECT_EQ(words_of({"max_ulp", infinity, 2, false, ""}), "max_ulp is infinite; at most 2 is allowed");
}

TEST(Margins, of_rounding_are_apart_until_they_fail) {
  const auto margins = [](std::vector<Criterion> criteria) { return margins_of(failed(8, std::move(criteria))); };
  const Criterion bound{"G1 bound", 0.999, 1, true, "", Criterion::About::rounding};
  const Criterion rms{"G2 rms", 0.9, 3, true, ""};
  EXPECT_EQ(margins({bound, rms}).arithmetic, 0.3);
  EXPECT_EQ(margins({bound, rms}).rounding, 0.999);
  EXPECT_EQ(margins({bound}).arithmetic, std::nullopt);
  EXPECT_EQ(margins({{"G1 bound", 2, 1, false, "", Criterion::About::rounding}, rms}).arithmetic, 2);
  const json record = failed(8, {{"exact", 7, 0, false, ""}, rms});
  EXPECT_TRUE(std::isinf(margins_of(record).arithmetic.value_or(0)));
  EXPECT_EQ(margins_of(record).without_ratio, "exact");
  EXPECT_EQ(margins_of(failed(8, {})).arithmetic, std::nullopt);
}

TEST(Margins, are_columns_of_the_table_and_the_report_keeps_its_number) {
  json record = failed(8, {{"G1 bound", 0.999, 1, true, "", Criterion::About::rounding}, {"G2 rms", 0.9, 3, true, ""}});
  record["status"] = "pass";
  EXPECT_EQ(record["error_over_limit"], 0.999);
  const std::string text = views::render_groups(report_of({record}), {});
  EXPECT_TRUE(has(text, "worst error/limit  rounding  at")) << text;
  EXPECT_TRUE(has(text, "             0.30      1.00  m=8,n=4,k=8")) << text;
  const std::string broken = views::render_groups(report_of({class_failure(8)}), {});
  EXPECT_TRUE(has(broken, "            class         -")) << broken;
  EXPECT_FALSE(has(broken, "Infinity")) << broken;
}

TEST(FailureGroups, have_one_cause_each_and_the_largest_comes_first) {
  const Criterion rms{"G2 rms", 5.8, 3, false, ""};
  json caused = failed(4, {rms});
  caused["runs"][0]["outputs"]["d"]["findings"] = {
      {{"name", "range_of_k"}, {"measured", 1}, {"text", "all of it"}, {"cause", "the last 1 of k is missing"}}};
  json crashed = failed(5, {});
  crashed["status"] = "crashed";
  crashed["reason"] = "signal 11";
  const json cases = {failed(1, {rms}), class_failure(2), class_failure(3), caused, crashed};
  const std::vector<CaseGroup> groups = failure_groups(cases);
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups[0].what, "FP32 asked, TF32 ran");
  EXPECT_EQ(groups[0].cases, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(groups[1].what, "gemm, d: G2 rms");
  EXPECT_EQ(groups[2].what, "the last 1 of k is missing");
  EXPECT_EQ(groups[3].what, "gemm: signal 11");
}

TEST(Console, shows_one_failure_of_each_kind_and_names_the_others) {
  std::vector<json> cases;
  for (std::int64_t k = 1; k <= 41; ++k) {
    cases.push_back(class_failure(k));
  }
  const std::string text = views::render_failures(report_of(cases), {});
  EXPECT_TRUE(text.starts_with("41 fail: FP32 asked, TF32 ran\nFAIL  gemm/m=8,n=4,k=1/fp32/cublaslt   #")) << text;
  EXPECT_TRUE(has(text, "      d: class: expected fp32, observed tf32_rne\n")) << text;
  EXPECT_FALSE(has(text, "k=2/")) << text;
  EXPECT_TRUE(has(text, " and 35 more\n")) << text;
  EXPECT_FALSE(has(text, "1 > 0")) << text;
}

TEST(Console, shows_ten_kinds_of_failures) {
  std::vector<json> cases;
  for (std::int64_t i = 1; i <= 12; ++i) {
    cases.push_back(failed(i, {{fmt::format("gate {}", i), 5.8, 3, false, ""}}));
  }
  const std::string text = views::render_failures(report_of(cases), {});
  EXPECT_TRUE(has(text, "gate 10 5.8 > 3"));
  EXPECT_FALSE(has(text, "gate 11"));
  EXPECT_TRUE(has(text, "the report has 2 more failures of other kinds")) << text;
  cases.pop_back();
  EXPECT_TRUE(has(views::render_failures(report_of(cases), {}), "the report has 1 more failure of other kinds"));
}

TEST(Console, a_warning_is_shown_like_a_failure) {
  const plan::Case c = sample_case("fp16", 64);
  verdict::CaseResult result = sample_result(c, {{}});
  result.status = result.runs[0].status = Status::warn;
  result.reason = result.runs[0].failing =
      "d: 4 slices of k are added in fp16; otherwise this would fail: G2 rms 12 > 4";
  result.runs[0].outputs[0].declared = "4 slices of k are added in fp16";
  result.runs[0].outputs[0].wrong = metric::WrongElements{.count = 0, .of = 32};
  json record = to_json(result);
  record["reproduce"] = "te-numcheck run plan.json --case 1";
  const std::string text = views::render_warnings(report_of({record}), {});
  EXPECT_TRUE(has(text, "WARN  gemm/m=8,n=4,k=64/fp16/cublaslt   #")) << text;
  EXPECT_TRUE(has(text, "otherwise this would fail: G2 rms 12 > 4")) << text;
  EXPECT_TRUE(has(text, "no single element of 32 is beyond its bound")) << text;
  EXPECT_TRUE(has(text, "worst at [3,1]: got 1.0078125")) << text;
  EXPECT_TRUE(has(text, "run again: te-numcheck run plan.json --case 1")) << text;
  EXPECT_EQ(views::render_notes(report_of({record}), {}), "") << "not once more as a reason";
}

json output_with(const json& metrics, const json& worst = json::array()) {
  json record = failed(8, {{"G0 pattern", 1, 0, false, "", Criterion::About::pattern}});
  json output = record["runs"][0]["outputs"]["d"];
  output["metrics"].update(metrics);
  output["worst"] = worst;
  return output;
}

TEST(Output, without_numbers_has_no_error) {
  const json unwritten = output_with(
      {{"elements", 32}, {"finite", 0}, {"nonfinite_mismatch", 32}, {"rel_l2", 0}, {"effective_bits", "Infinity"}});
  const std::string text = views::output_lines("d", unwritten);
  EXPECT_TRUE(has(text, "NaN or infinity in the wrong place in 32 of 32 elements\n")) << text;
  EXPECT_FALSE(has(text, "relative L2")) << text;
}

TEST(Output, tells_the_error_of_what_is_finite) {
  const json partly = output_with(
      {{"elements", 32}, {"finite", 31}, {"nonfinite_mismatch", 1}, {"rel_l2", 2.5e-7}, {"effective_bits", 21.2}});
  EXPECT_TRUE(has(views::output_lines("d", partly), "relative L2 2.50e-07, 21.2 effective bits in 31 finite elements"));
  const json exact = output_with({{"elements", 32}, {"finite", 32}, {"rel_l2", 0}, {"effective_bits", "Infinity"}});
  EXPECT_TRUE(has(views::output_lines("d", exact), "      no error\n")) << views::output_lines("d", exact);
  const json wrong = output_with({{"elements", 32}, {"finite", 32}, {"rel_l2", 0.635}, {"effective_bits", -0.08}});
  EXPECT_TRUE(has(views::output_lines("d", wrong), "relative L2 6.35e-01, 0.0 effective bits"));
}

TEST(Output, distances_in_ulps_are_short_or_left_out) {
  const auto line = [](const json& got, double expected, const json& ulps) {
    const json worst = {{"index", {3, 1}}, {"got", got}, {"got_bits", "0x1"}, {"expected", expected}, {"ulps", ulps}};
    return views::output_lines("d", output_with(json::object(), json::array({worst})));
  };
  EXPECT_TRUE(has(line(1.5, 1.25, 12), "expected 1.25  12.0 ULP\n"));
  EXPECT_TRUE(has(line(1.5, 1.25, 7050178.5), "expected 1.25  7.05e+06 ULP\n"));
  EXPECT_TRUE(has(line(1.5, 0, 1.2e41), "expected 0.0  off by 1.5\n")) << line(1.5, 0, 1.2e41);
  EXPECT_TRUE(has(line("NaN", 1.25, "NaN"), "got NaN (0x1)  expected 1.25\n"));
}

TEST(Output, findings_have_values) {
  json output = output_with(json::object());
  output["findings"] = {{{"name", "row regression: epsilon"},
                         {"measured", 9e-5},
                         {"text",
                          "the rows' scales fit 0.0001, "
                          "requested 1e-05"}},
                        {{"name", "row sum spread"}, {"measured", 1.31}, {"text", ""}}};
  const std::string text = views::output_lines("d", output);
  EXPECT_TRUE(has(text, "row regression: epsilon 9e-05: the rows' scales fit 0.0001, requested 1e-05\n")) << text;
  EXPECT_TRUE(has(text, "row sum spread 1.31\n")) << text;
}

metric::WrongLines lines(std::int64_t of, std::vector<metric::WrongLines::Range> ranges, std::int64_t step = 0) {
  metric::WrongLines all{.of = of, .ranges = ranges, .range_count = std::ssize(ranges), .step = step};
  for (const auto& range : ranges) {
    all.touched += range.last - range.first + 1;
  }
  return all;
}

std::string sentence(std::uint64_t count, std::uint64_t of, const metric::WrongLines& rows,
                     const metric::WrongLines& columns, const metric::WrongLines& matrices = lines(1, {{0, 0}}),
                     const std::optional<metric::WrongTiles>& tiles = std::nullopt) {
  return views::wrong_sentence(wrong_json({count, of, matrices, rows, columns, tiles}));
}

TEST(WrongSentence, names_rows_columns_and_batches) {
  const metric::WrongLines all = lines(64, {{0, 63}});
  EXPECT_EQ(sentence(128, 4096, lines(64, {{0, 0}, {32, 32}}), all),
            "128 of 4096 elements wrong: all of rows 0 and 32");
  EXPECT_EQ(sentence(120, 4096, lines(64, {{0, 0}, {32, 32}}), all),
            "120 of 4096 elements wrong, all in rows 0 and 32");
  EXPECT_EQ(sentence(64, 4096, lines(64, {{63, 63}}), all), "64 of 4096 elements wrong: all of the last row (63)");
  EXPECT_EQ(sentence(512, 4096, all, lines(64, {{56, 63}})),
            "512 of 4096 elements wrong: all of the last 8 columns (56-63)");
  EXPECT_EQ(sentence(1, 4096, lines(64, {{8, 8}}), lines(64, {{9, 9}})), "1 of 4096 elements wrong: row 8, column 9");
  EXPECT_EQ(sentence(4096, 8192, all, all, lines(2, {{1, 1}})),
            "4096 of 8192 elements wrong: all of the last batch (1)");
  EXPECT_EQ(sentence(700, 4096, all, all), "700 of 4096 elements wrong, in all rows and columns");
}

TEST(WrongSentence, names_patterns_and_tiles) {
  const metric::WrongLines all = lines(64, {{0, 63}});
  EXPECT_EQ(sentence(1024, 4096, lines(64, {{3, 4}, {11, 12}, {19, 20}}, 8), all),
            "1024 of 4096 elements wrong, all in 2 of every 8 rows from 3 on");
  EXPECT_EQ(sentence(50, 4096, lines(64, {{1, 1}, {3, 3}, {8, 8}, {20, 20}, {31, 31}}), all),
            "50 of 4096 elements wrong, all in 5 of 64 rows, the first being 1");
  const metric::WrongLines middle = lines(64, {{16, 31}});
  EXPECT_EQ(sentence(256, 4096, middle, middle, lines(1, {{0, 0}}), metric::WrongTiles{16, 1, 16, {0, 16, 16}}),
            "256 of 4096 elements wrong: 1 of 16 tiles of 16x16, at [16,16]");
  EXPECT_EQ(sentence(512, 4096, all, all, lines(1, {{0, 0}}), metric::WrongTiles{16, 2, 16, {0, 16, 32}}),
            "512 of 4096 elements wrong: 2 of 16 tiles of 16x16, the first at [16,32]");
}

TEST(WrongSentence, does_not_list_where_scattered_elements_happen_to_lie) {
  const metric::WrongLines most = lines(64, {{0, 21}, {23, 31}, {33, 63}});
  EXPECT_EQ(sentence(247, 4096, most, most), "247 of 4096 elements wrong, scattered");
  const metric::WrongLines some = lines(64, {{1, 1}, {3, 3}, {8, 8}, {20, 20}, {31, 31}});
  EXPECT_EQ(sentence(6, 4096, some, some), "6 of 4096 elements wrong, scattered");
}

TEST(WrongSentence, of_all_and_of_none_is_honest) {
  EXPECT_EQ(sentence(0, 4096, {}, {}), "no single element of 4096 is beyond its bound; together they are off");
  EXPECT_EQ(sentence(4096, 4096, lines(64, {{0, 63}}), lines(64, {{0, 63}})), "all 4096 elements are wrong");
  EXPECT_EQ(sentence(1, 1, lines(1, {{0, 0}}), lines(1, {{0, 0}})), "the only element is wrong");
}

TEST(Slowest, are_listed_with_their_stages) {
  std::vector<json> cases = {failed(1, {}), failed(2, {}), failed(3, {})};
  cases[1]["time_s"]["reference"] = 7.0;
  cases[2]["time_s"]["device"] = 3.0;
  const std::string text = views::render_slowest(report_of(cases), {.width = 0, .slowest = 2});
  EXPECT_TRUE(has(text, "slowest 2 cases")) << text;
  EXPECT_LT(text.find("k=2/"), text.find("k=3/")) << text;
  EXPECT_FALSE(has(text, "k=1/")) << text;
  EXPECT_TRUE(has(text, "7.0 s")) << text;
  EXPECT_EQ(views::render_slowest(report_of(cases), {}), "");
}

}  // namespace
}  // namespace numcheck::report
