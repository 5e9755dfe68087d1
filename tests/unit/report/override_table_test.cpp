#include "report/override_table.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/override_sentences.hpp"
#include "sample_record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using testing::sample_case;
using testing::sample_result;
using testing::SampleRun;

const char* const kVariable = "NVIDIA_TF32_OVERRIDE";

json record(const char* mode, std::int64_t k, const plan::Environment& environment,
            const std::vector<SampleRun>& runs) {
  const plan::Case c = sample_case(mode, k, environment);
  return to_json(sample_result(c, runs));
}

plan::Environment with(const std::optional<std::string>& value) {
  return {{kVariable, value}};
}

TEST(OverrideEffect, joins_the_three_states_and_compares_bits) {
  const SampleRun fp32{.bits = "a", .observed = "fp32", .rel_l2 = 1.1e-6, .effective_bits = 20.5};
  const SampleRun tf32{.bits = "b", .observed = "tf32_rne", .rel_l2 = 2.9e-4, .effective_bits = 11.5};
  const std::vector<json> cases = {record("fp32", 64, with(std::nullopt), {fp32}),
                                   record("fp32", 64, with("0"), {fp32}), record("fp32", 64, with("1"), {tf32})};
  const json effect = override_effect(cases, json::object(), false);
  ASSERT_EQ(effect["rows"].size(), 1u);
  const json& states = effect["rows"][0]["states"];
  EXPECT_EQ(effect["rows"][0]["base"], "unset");
  EXPECT_TRUE(states["unset"]["bits"].is_null());
  EXPECT_EQ(states["0"]["bits"], "identical");
  EXPECT_EQ(states["1"]["bits"], "differ");
  EXPECT_EQ(states["1"]["observed"], json::array({"tf32_rne"}));
  EXPECT_EQ(states["1"]["rel_l2"], 2.9e-4);
  ASSERT_EQ(effect["sentences"].size(), 1u);
  EXPECT_EQ(effect["sentences"][0],
            "gemm fp32 (cublaslt): override 1 turns FP32 into TF32: error 1.1e-06 -> 2.9e-04; override 0 changes "
            "nothing, bit for bit");
}

TEST(OverrideEffect, says_no_effect_where_all_bits_are_equal) {
  const SampleRun run{.bits = "a", .observed = ""};
  const std::vector<json> cases = {record("bf16", 64, with(std::nullopt), {run}), record("bf16", 64, with("0"), {run}),
                                   record("bf16", 64, with("1"), {run})};
  const json effect = override_effect(cases, json::object(), false);
  EXPECT_EQ(effect["sentences"][0], "gemm bf16 (cublaslt): no effect: bitwise identical under unset, 0 and 1");
}

TEST(OverrideEffect, names_the_states_that_ran) {
  const std::vector<json> cases = {record("bf16", 64, with(std::nullopt), {{}}), record("bf16", 64, with("1"), {{}}),
                                   record("fp16", 64, with("0"), {{}}), record("fp16", 64, with("1"), {{}})};
  const json sentences = override_effect(cases, json::object(), false)["sentences"];
  ASSERT_EQ(sentences.size(), 2u);
  EXPECT_EQ(sentences[0], "gemm bf16 (cublaslt): no effect: bitwise identical under unset and 1");
  EXPECT_EQ(sentences[1], "gemm fp16 (cublaslt): no effect: bitwise identical under 0 and 1");
}

TEST(OverrideEffect, counts_shapes_where_only_some_change) {
  const SampleRun before{.bits = "a", .observed = "tf32_rne", .rel_l2 = 2e-4};
  const SampleRun after{.bits = "b", .observed = "fp32", .rel_l2 = 1e-6};
  const std::vector<json> cases = {
      record("tf32", 64, with(std::nullopt), {before}), record("tf32", 64, with("0"), {after}),
      record("tf32", 65, with(std::nullopt), {after}), record("tf32", 65, with("0"), {after})};
  const json effect = override_effect(cases, json::object(), false);
  ASSERT_EQ(effect["rows"].size(), 2u);
  EXPECT_EQ(effect["sentences"][0],
            "gemm tf32 (cublaslt): override 0 turns TF32 into FP32 in 1 of 2 shapes: error 2.0e-04 -> 1.0e-06");
}

TEST(OverrideEffect, bits_that_change_within_a_class_are_named_as_such) {
  const std::vector<json> cases = {record("fp32", 64, with(std::nullopt), {{.bits = "a"}}),
                                   record("fp32", 64, with("1"), {{.bits = "b"}})};
  EXPECT_EQ(override_effect(cases, json::object(), false)["sentences"][0],
            "gemm fp32 (cublaslt): override 1 changes bits but no precision class: error 1.1e-06 -> 1.1e-06");
}

TEST(OverrideEffect, compares_algorithm_by_algorithm) {
  const SampleRun first{.label = "algo 1", .bits = "a"};
  const SampleRun second{.label = "algo 2", .bits = "b"};
  const SampleRun changed{.label = "algo 2", .bits = "c"};
  const auto bits = [&](const std::vector<SampleRun>& left, const std::vector<SampleRun>& right) {
    const std::vector<json> cases = {record("fp32", 64, with(std::nullopt), left),
                                     record("fp32", 64, with("0"), right)};
    return override_effect(cases, json::object(), false)["rows"][0]["states"]["0"]["bits"].get<std::string>();
  };
  EXPECT_EQ(bits({first, second}, {second, first}), "identical") << "order does not matter";
  EXPECT_EQ(bits({first, second}, {first, changed}), "differ");
  EXPECT_EQ(bits({first}, {{.label = "algo 9", .bits = "a"}}), "identical") << "no common algorithm: the first runs";
  EXPECT_EQ(bits({first}, {{.label = "algo 9", .bits = "z"}}), "differ");
}

TEST(OverrideEffect, cases_that_do_not_name_the_variable_ran_under_the_ambient_value) {
  const std::vector<json> cases = {record("fp32", 64, {}, {{.bits = "a"}}),
                                   record("fp32", 64, with("0"), {{.bits = "b"}})};
  EXPECT_EQ(override_effect(cases, json::object(), false)["rows"][0]["base"], "unset");
  const json ambient_one = {{kVariable, "1"}};
  const json effect = override_effect(cases, ambient_one, false);
  ASSERT_EQ(effect["rows"].size(), 1u);
  EXPECT_EQ(effect["rows"][0]["base"], "0");
  EXPECT_TRUE(effect["rows"][0]["states"].contains("1"));
}

TEST(OverrideEffect, what_was_modelled_is_a_prediction) {
  std::vector<json> cases = {record("fp32", 64, with(std::nullopt), {{}}), record("fp32", 64, with("0"), {{}})};
  const auto labelled = [&cases](bool simulated) {
    const json effect = override_effect(cases, json::object(), simulated);
    return std::pair(
        effect["rows"][0]["predicted"].get<bool>(),
        effect["sentences"][0].get<std::string>().substr(0, effect["sentences"][0].get<std::string>().find(':')));
  };
  EXPECT_EQ(labelled(false), std::pair(false, std::string("gemm fp32 (cublaslt)")));
  EXPECT_EQ(labelled(true), std::pair(true, std::string("gemm fp32 (cublaslt, predicted)")));
  for (json& one : cases) {
    one["backend"] = "sim";
  }
  EXPECT_EQ(labelled(false), std::pair(true, std::string("gemm fp32 (sim, predicted)"))) << "on a GPU too";
}

TEST(OverrideEffect, needs_two_states_with_outputs) {
  const json alone = record("fp32", 64, with("0"), {{}});
  json broken = record("fp32", 64, with("1"), {{}});
  broken["runs"] = json::array();
  const std::vector<json> cases = {alone, broken};
  EXPECT_TRUE(override_effect(cases, json::object(), false)["rows"].empty());
}

TEST(OverrideEffect, other_variables_keep_cases_apart) {
  plan::Environment other = with("0");
  other["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8";
  const std::vector<json> cases = {record("fp32", 64, with(std::nullopt), {{}}), record("fp32", 64, other, {{}})};
  EXPECT_TRUE(override_effect(cases, json::object(), false)["rows"].empty());
}

TEST(ClassWords, unknown_names_are_unchanged) {
  EXPECT_EQ(class_label("tf32_rne"), "TF32");
  EXPECT_EQ(class_label("something_new"), "something_new");
}

}  // namespace
}  // namespace numcheck::report
