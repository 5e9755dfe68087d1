// The classes that requests got: what counts, how it is grouped, and what the console shows of it.
#include "report/precision_map.hpp"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/report.hpp"
#include "report/views/console.hpp"
#include "sample_record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using testing::sample_result;
using testing::SampleRun;

const char* const kVariable = "NVIDIA_TF32_OVERRIDE";

struct Shape {
  std::int64_t m = 64, n = 64, k = 64, batch = 1;
  bool trans_b = false;
  double beta = 0;
  std::int64_t pad_a = 0, misalign = 0;
};

plan::Case case_of(const char* mode, const Shape& shape, const plan::Environment& environment = {}) {
  plan::Case c = testing::sample_case(mode, shape.k, environment);
  op::GemmParams params;
  params.m = shape.m;
  params.n = shape.n;
  params.k = shape.k;
  params.batch = shape.batch;
  params.trans_b = shape.trans_b;
  params.beta = shape.beta;
  params.pad_a = shape.pad_a;
  params.misalign = shape.misalign;
  c.params = op::to_params(params);
  plan::identify(c);
  return c;
}

json record(const char* mode, const Shape& shape, const std::vector<std::string>& observed,
            const plan::Environment& environment = {}) {
  const plan::Case c = case_of(mode, shape, environment);
  std::vector<SampleRun> runs;
  std::ranges::transform(observed, std::back_inserter(runs),
                         [](const std::string& name) { return SampleRun{.observed = name}; });
  return to_json(sample_result(c, runs));
}

json map_of(const std::vector<json>& cases, const json& environment = json::object()) {
  return precision_map(cases, environment);
}

TEST(PrecisionMap, without_observed_classes_is_empty) {
  EXPECT_TRUE(map_of({}).empty());
  json no_runs = record("fp32", {}, {});
  json failed = record("fp32", {}, {"fp32"});
  failed["runs"][0]["error"] = "illegal address";
  EXPECT_TRUE(map_of({no_runs, failed, record("bf16", {}, {""})}).empty());
  RunFacts facts;
  EXPECT_FALSE(make_report(facts, {record("bf16", {}, {""})}).contains("precision_map"));
}

TEST(PrecisionMap, an_unknown_class_is_a_class_and_keeps_its_note) {
  json odd = record("fp32", {}, {"unknown"});
  odd["runs"][0]["details"]["classification"] = "a is fp32, b is tf32_rne";
  const json rows = map_of({odd});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("class"), "unknown");
  EXPECT_EQ(rows[0].at("note"), "a is fp32, b is tf32_rne");
  EXPECT_EQ(rows[0].at("expected"), "fp32");
  EXPECT_EQ(rows[0].at("where"), "everywhere");
  EXPECT_EQ(rows[0].at("border"), "none");
}

TEST(PrecisionMap, classes_that_no_condition_separates_have_their_smallest_shapes) {
  const json small = record("tf32", {.k = 8}, {"fp32"}), large = record("tf32", {.k = 1024}, {"tf32_rne"});
  json twin = small, other_large = record("tf32", {.k = 1024}, {"fp32"});
  twin["runs"][0]["observed_class"] = "tf32_rne";
  const json rows = map_of({large, other_large, small, twin});
  ASSERT_EQ(rows.size(), 2U);
  for (const json& row : rows) {
    EXPECT_EQ(row.at("border"), "unknown");
    EXPECT_EQ(row.at("where"), "no simple condition");
    EXPECT_EQ(row.at("smallest"), small.at("digest"));
    EXPECT_EQ(row.at("smallest_id"), small.at("id"));
  }
}

TEST(PrecisionMap, borders_are_conditions_on_the_shape) {
  const auto wheres = [](const std::vector<json>& cases) {
    std::vector<std::string> found;
    for (const json& row : map_of(cases)) {
      EXPECT_EQ(row.at("border"), "shape");
      found.push_back(row.at("class").get<std::string>() + ": " + row.at("where").get<std::string>());
    }
    return found;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(wheres({record("tf32", {.k = 64}, {"tf32_rne"}), record("tf32", {.k = 66}, {"fp32"}),
                    record("tf32", {.k = 68}, {"tf32_rne"})}),
            (Words{"tf32_rne: k % 4 = 0", "fp32: k % 4 != 0"}));
  EXPECT_EQ(wheres({record("tf32", {.m = 16}, {"fp32"}), record("tf32", {.m = 64}, {"tf32_rne"}),
                    record("tf32", {.m = 128}, {"tf32_rne"}), record("tf32", {.m = 256}, {"tf32_rne"})}),
            (Words{"tf32_rne: m >= 64", "fp32: m = 16"}));
  EXPECT_EQ(wheres({record("tf32", {.beta = 1}, {"fp32"}), record("tf32", {}, {"tf32_rne"})}),
            (Words{"fp32: beta != 0", "tf32_rne: beta = 0"}));
  EXPECT_EQ(wheres({record("tf32", {.misalign = 1}, {"fp32"}), record("tf32", {}, {"tf32_rne"})}),
            (Words{"fp32: misalign != 0", "tf32_rne: misalign = 0"}));
  EXPECT_EQ(wheres({record("tf32", {.k = 63, .pad_a = 1}, {"tf32_rne"}), record("tf32", {.k = 64}, {"tf32_rne"}),
                    record("tf32", {.k = 63}, {"fp32"}), record("tf32", {.k = 64, .pad_a = 1}, {"fp32"})}),
            (Words{"tf32_rne: lda % 2 = 0", "fp32: lda % 2 != 0"}));
}

TEST(PrecisionMap, cases_that_get_both_classes_are_told_apart_by_algorithm) {
  json first = record("tf32", {.k = 64}, {"tf32_rne", "fp32"}),
       second = record("tf32", {.k = 128}, {"tf32_rne", "fp32"});
  for (json* one : {&first, &second}) {
    (*one)["runs"][1]["details"]["id"] = "3";
  }
  const json rows = map_of({first, second});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("border"), "algorithm");
  EXPECT_EQ(rows[0].at("where"), "algo 67");
  EXPECT_EQ(rows[1].at("where"), "algo 3");
  EXPECT_EQ(rows[1].at("cases"), 2);
  EXPECT_EQ(rows[1].at("runs"), 2);
  second["runs"][1]["details"]["id"] = "67";
  EXPECT_EQ(map_of({first, second})[0].at("border"), "unknown");
  second["runs"][1]["details"].erase("id");
  EXPECT_EQ(map_of({first, second})[0].at("border"), "unknown");
}

TEST(PrecisionMap, requests_are_apart_by_mode_variable_backend_and_layout_in_the_order_of_the_record) {
  const std::vector<json> cases = {record("tf32", {}, {"tf32_rne"}), record("fp32", {}, {"fp32"}),
                                   record("fp32", {.trans_b = true}, {"fp32"}),
                                   record("fp32", {}, {"tf32_rne"}, {{kVariable, "1"}}),
                                   record("fp32", {.k = 8}, {"fp32"}, {{kVariable, std::nullopt}})};
  const json rows = map_of(cases);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].at("mode"), "tf32");
  EXPECT_EQ(rows[1].at("cases"), 2) << "unset is unset, whether the case says so or not";
  EXPECT_EQ(rows[1].at("request"), json::object());
  EXPECT_EQ(rows[2].at("layout"), (json{{"trans_a", false}, {"trans_b", true}}));
  EXPECT_EQ(rows[3].at("request"), (json{{kVariable, "1"}}));
  EXPECT_EQ(map_of(cases), rows);
  const json ambient = map_of(cases, {{kVariable, "1"}});
  EXPECT_EQ(ambient[0].at("request"), (json{{kVariable, "1"}}));
}

TEST(PrecisionMap, rows_have_the_members_of_the_schema) {
  const json rows = map_of({record("fp32", {}, {"fp32"}), record("fp32", {.k = 66}, {"tf32_rne"})});
  const json schema = report_schema().at("properties").at("precision_map").at("items").at("properties");
  for (const json& row : rows) {
    ASSERT_EQ(row.size(), schema.size());
    for (const auto& [name, value] : row.items()) {
      EXPECT_TRUE(schema.contains(name)) << name;
    }
  }
}

TEST(PrecisionMap, of_many_cases_takes_little_time) {
  constexpr std::int64_t kCases = 100000;
  // Only what the map reads, because whole records would take gigabytes.
  const auto slim = [](const std::string& name) {
    const json whole = record("tf32", {}, {name});
    json kept = json::object();
    for (const char* key : {"op", "mode", "backend", "params", "environment", "digest", "id"}) {
      kept[key] = whole.at(key);
    }
    const json& run = whole.at("runs").front();
    for (const char* key : {"observed_class", "expected_class", "error", "details"}) {
      kept["runs"][0][key] = run.at(key);
    }
    return kept;
  };
  const json with = slim("tf32_rne"), without = slim("fp32");
  std::vector<json> cases;
  for (std::int64_t i = 0; i < kCases; ++i) {
    const std::int64_t m = 1 + i % 311, k = 1 + i / 311;
    json& added = cases.emplace_back((m % 4 == 0) == (k % 4 == 0) ? with : without);
    added["params"]["m"] = m;
    added["params"]["k"] = k;
  }
  const auto start = std::chrono::steady_clock::now();
  const json rows = map_of(cases);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(rows[0].at("border"), "unknown");
  EXPECT_EQ(rows[0].at("cases").get<std::int64_t>() + rows[1].at("cases").get<std::int64_t>(), kCases);
  RecordProperty("seconds", std::to_string(taken.count()));
  EXPECT_LT(taken.count(), 10) << "about 0.5 s on one core; sanitizers are slower";
}

std::string console_of(const std::vector<json>& cases, int verbosity) {
  RunFacts facts;
  return views::render_console(make_report(facts, cases), {.verbosity = verbosity});
}

TEST(PrecisionMap, the_console_shows_only_news) {
  const std::vector<json> plain = {record("fp32", {}, {"fp32"})};
  EXPECT_EQ(console_of(plain, 0).find("precision map"), std::string::npos);
  EXPECT_NE(console_of(plain, 1).find("precision map"), std::string::npos);
  std::vector<json> cases = plain;
  cases.push_back(record("fp32", {.k = 66}, {"tf32_rne"}));
  const std::string text = console_of(cases, 0);
  EXPECT_NE(text.find("gemm  fp32     cublaslt  A B      FP32      FP32   k % 4 = 0 (1)"), std::string::npos) << text;
  EXPECT_NE(text.find("TF32   k % 4 != 0 (1)"), std::string::npos) << text;
  EXPECT_NE(text.find("(1) other conditions fit"), std::string::npos) << text;
  const std::vector<json> surprise = {record("fp32", {}, {"tf32_rne"})};
  EXPECT_NE(console_of(surprise, 0).find("everywhere"), std::string::npos);
}

TEST(PrecisionMap, the_console_joins_requests_and_layouts_with_the_same_classes) {
  std::vector<json> cases;
  for (const char* mode : {"fp32_fast16f", "fp32_fast16bf", "tf32"}) {
    for (const bool trans_b : {false, true}) {
      for (const std::int64_t k : {4, 8}) {
        cases.push_back(record(mode, {.k = k, .trans_b = trans_b}, {"tf32_rne"}));
        cases.push_back(record(mode, {.k = k + 1, .trans_b = trans_b}, {"fp32"}));
      }
    }
  }
  cases.push_back(record("tf32", {.k = 13, .trans_b = true}, {"tf32_rne"}));  // another border
  const std::string text = console_of(cases, 0);
  const auto has = [&text](const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has("gemm  fp32_fast16f fp32_fast16bf  cublaslt  A B, A B^T  FP32      TF32")) << text;
  EXPECT_TRUE(has("gemm  tf32                        cublaslt  A B         FP32      TF32")) << text;
  EXPECT_TRUE(has("gemm  tf32                        cublaslt  A B^T       FP32      TF32")) << text;
  EXPECT_TRUE(has("k % 2 = 0                  8  m=64")) << "two requests, two layouts, two shapes:\n" << text;
}

}  // namespace
}  // namespace numcheck::report
