// Identifiers, digests, and the one-line JSON form of a case.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support.hpp"

namespace numcheck::plan {
namespace {

using nlohmann::json;

Case only_case(std::string_view keys) {
  return testing::load(testing::with_case(keys)).cases.at(0);
}

std::string id_of(std::string_view keys) {
  return only_case(keys).id;
}

TEST(Identifier, omits_defaults) {
  EXPECT_EQ(id_of(R"("params": {"m": 128, "n": 768, "k": 8192, "trans_b": true})"),
            "gemm/m=128,n=768,k=8192,tb=1/bf16/auto");
  EXPECT_EQ(id_of(R"("params": {"batch": 1, "alpha": 1.0, "epilogue": "none"}, "inputs": {"sigma": 1},
                     "algorithms": "heuristic", "environment": {})"),
            "gemm/m=1,n=1,k=1/bf16/auto");
}

TEST(Identifier, has_every_parameter_in_canonical_order) {
  EXPECT_EQ(id_of(R"("params": {"misalign": 1, "pad_d": 4, "pad_b": 3, "pad_a": 2, "accumulate": "fast",
                     "output": "fp32", "epilogue": "relu", "bias": true, "beta": -0.1, "alpha": 1e-3,
                     "trans_b": true, "trans_a": true, "batch": 2}, "mode": "fp8_e4m3")"),
            "gemm/m=1,n=1,k=1,b=2,ta=1,tb=1,alpha=0.001,beta=-0.1,bias=1,epi=relu,out=fp32,acc=fast,pa=2,pb=3,pd=4,"
            "mis=1/fp8_e4m3/auto");
}

TEST(Identifier, inputs) {
  EXPECT_EQ(id_of(R"("inputs": {"distribution": "exact"})"), "gemm/m=1,n=1,k=1/bf16/auto/exact");
  EXPECT_EQ(id_of(R"("inputs": {"distribution": "outliers", "fraction": 0.05})"),
            "gemm/m=1,n=1,k=1/bf16/auto/outliers(fraction=0.05)");
  EXPECT_EQ(id_of(R"("inputs": {"a": {"distribution": "outliers"}})"), "gemm/m=1,n=1,k=1/bf16/auto/a=outliers");
  EXPECT_EQ(id_of(R"("inputs": {"distribution": "uniform", "b": {"distribution": "normal"},
                     "a": {"distribution": "log_uniform", "signed": false, "low": -2}})"),
            "gemm/m=1,n=1,k=1/bf16/auto/uniform,a=log_uniform(low=-2,signed=0),b=normal");
  EXPECT_EQ(id_of(R"("inputs": {"distribution": "normal", "sigma": 2})"), "gemm/m=1,n=1,k=1/bf16/auto/normal(sigma=2)");
}

TEST(Identifier, seeds_and_algorithms_and_environment) {
  EXPECT_EQ(id_of(R"("seed": 18446744073709551615)"), "gemm/m=1,n=1,k=1/bf16/auto/seed=18446744073709551615");
  EXPECT_EQ(id_of(R"("algorithms": "all")"), "gemm/m=1,n=1,k=1/bf16/auto/algorithms=all");
  EXPECT_EQ(id_of(R"("algorithms": {"top": 8}, "inputs": {"distribution": "exact"}, "seed": 0,
                     "environment": {"NVIDIA_TF32_OVERRIDE": null, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"})"),
            "gemm/m=1,n=1,k=1/bf16/auto/algorithms=top:8/exact/seed=0/"
            "CUBLAS_WORKSPACE_CONFIG=:4096:8,NVIDIA_TF32_OVERRIDE=unset");
}

TEST(Identifier, tells_zeros_by_their_signs) {
  const Plan plan = testing::load(testing::with_case(
      R"("inputs": [{"distribution": "constant", "value": 0.0}, {"distribution": "constant", "value": -0.0}])"));
  ASSERT_EQ(plan.cases.size(), 2U);
  EXPECT_NE(plan.cases[0].id, plan.cases[1].id);
  EXPECT_NE(plan.cases[0].digest, plan.cases[1].digest);
}

TEST(Identifier, follows_the_backend_that_is_set_later) {
  Case c = only_case(R"("backend": "auto")");
  EXPECT_EQ(c.id, "gemm/m=1,n=1,k=1/bf16/auto");
  const core::Digest before = c.digest;
  c.backend = "sim";
  identify(c);
  EXPECT_EQ(c.id, "gemm/m=1,n=1,k=1/bf16/sim");
  EXPECT_NE(c.digest, before);
}

TEST(Digest, changes_with_everything_that_changes_numbers) {
  const core::Digest base = only_case("\"tags\": []").digest;
  for (const char* keys :
       {R"("params": {"k": 2})", R"("params": {"trans_b": true})", R"("params": {"alpha": 1.5})",
        R"("params": {"epilogue": "relu"})", R"("mode": "fp16")", R"("backend": "sim")", R"("seed": 1)",
        R"("inputs": {"distribution": "exact"})", R"("inputs": {"sigma": 2})",
        R"("inputs": {"a": {"distribution": "uniform"}})", R"("inputs": {"b": {"distribution": "uniform"}})",
        R"("environment": {"NVIDIA_TF32_OVERRIDE": null})", R"("environment": {"NVIDIA_TF32_OVERRIDE": "0"})",
        R"("algorithms": "all")", R"("algorithms": {"top": 1})"}) {
    EXPECT_NE(only_case(keys).digest, base) << keys;
  }
}

TEST(Digest, ignores_what_does_not) {
  const Case base = only_case("\"tags\": []");
  for (const char* keys :
       {R"("tags": ["a"])", R"("tolerance": {"ulp": 1})", R"("timeout_s": 3)", R"("xfail": [{"reason": "12"}])",
        R"("$comment": "x")", R"("inputs": {"a": {"distribution": "normal"}})", R"("inputs": {"sigma": 1.0})"}) {
    EXPECT_EQ(only_case(keys).digest, base.digest) << keys;
    EXPECT_EQ(only_case(keys).id, base.id) << keys;
  }
  EXPECT_EQ(only_case(R"("seed": 0)").digest, base.digest) << "the plan's seed is 0 too";
}

TEST(Digest, covers_the_seed_of_the_plan) {
  const std::string text = testing::with_case("\"tags\": []");
  std::string seeded = text;
  seeded.insert(1, "\"seed\": 9, ");
  EXPECT_NE(testing::load(seeded).cases[0].digest, testing::load(text).cases[0].digest);
  EXPECT_EQ(testing::load(seeded).cases[0].id, testing::load(text).cases[0].id);
}

TEST(Digest, is_stable) {
  // Baselines are joined by digest: a change here orphans every baseline and needs a line in CHANGELOG.
  EXPECT_EQ(only_case(R"("backend": "cublaslt")").digest.hex(), "b1572e2c4476fdc2fdddfd799441b09f");
}

TEST(Digest, of_a_case_without_backend_is_that_of_auto) {
  EXPECT_EQ(only_case("\"tags\": []").digest, only_case(R"("backend": "auto")").digest);
}

TEST(Digest, leaves_out_parameters_that_have_their_defaults) {
  // So that an op can be given a parameter without orphaning the baselines of its cases.
  const json covered = json::parse(R"({
    "op": "gemm", "mode": "bf16", "backend": "auto", "seed": 0, "environment": {}, "algorithms": "heuristic",
    "inputs": {"distribution": "normal", "sigma": 1.0}, "params": {"m": 1, "n": 1, "k": 1}})");
  EXPECT_EQ(only_case(R"("params": {"alpha": 1.0, "bias": false})").digest, core::digest_of(covered.dump()));
}

TEST(Digest, of_the_plan_ignores_prose_only) {
  const std::string base = testing::load(R"({"version": 1, "description": "a", "cases": [
    {"op": "gemm", "params": {"m": 1, "n": 2, "k": 3}, "mode": "bf16"}]})")
                               .digest;
  EXPECT_EQ(testing::load(R"({"description": "b", "$comment": 1, /* */ "version": 1, "cases": [
    {"mode": "bf16", "params": {"n": 2, "k": 3, "$comment": 2, "m": 1}, "op": "gemm"}]})")
                .digest,
            base);
  EXPECT_NE(testing::load(R"({"version": 1, "cases": [
    {"op": "gemm", "params": {"m": 1, "n": 2, "k": 4}, "mode": "bf16"}]})")
                .digest,
            base);
  EXPECT_NE(testing::load(R"({"version": 1, "cases": [
    {"op": "gemm", "params": {"m": 1, "n": 2, "k": 3}, "mode": "bf16", "tolerance": {"ulp": 1}}]})")
                .digest,
            base);
}

TEST(CaseJson, has_every_default_filled_in) {
  EXPECT_EQ(case_to_json(only_case("\"tags\": [\"x\"]")), json::parse(R"({
    "op": "gemm", "mode": "bf16", "backend": "auto", "seed": 0, "environment": {}, "algorithms": "heuristic",
    "inputs": {"distribution": "normal", "sigma": 1.0},
    "params": {"m": 1, "n": 1, "k": 1, "batch": 1, "trans_a": false, "trans_b": false, "alpha": 1.0, "beta": 0.0,
               "in_place": false, "bias": false, "epilogue": "none", "output": "default", "accumulate": "default",
               "scaling": "tensor", "power_of_two": false, "pad_a": 0,
               "pad_b": 0, "pad_d": 0, "misalign": 0}})"));
}

TEST(CaseJson, round_trips) {
  for (
      const char* keys :
      {R"("tags": [])", R"("params": {"alpha": 0.1, "beta": -1e-30, "bias": true}, "seed": 18446744073709551615)",
       R"("inputs": {"distribution": "log_uniform", "signed": false, "a": {"distribution": "ties", "format": "tf32"}})",
       R"("inputs": {"distribution": "exact"}, "algorithms": "all")", R"("algorithms": {"top": 3}, "backend": "auto")",
       R"("environment": {"NVIDIA_TF32_OVERRIDE": null, "CUDNN_LIB_CONFIG": ""}, "mode": "fp8_hybrid",
           "params": {"output": "fp8_e5m2", "accumulate": "fast"})"}) {
    const Case c = only_case(keys);
    const json line = json::parse(case_to_json(c).dump());
    const Case back = case_from_json(line, &testing::lookup);
    EXPECT_EQ(back.id, c.id) << keys;
    EXPECT_EQ(back.digest, c.digest) << keys;
    EXPECT_EQ(case_to_json(back), line) << keys;
    EXPECT_EQ(back.params, c.params) << keys;
    EXPECT_EQ(back.environment, c.environment) << keys;
    EXPECT_EQ(back.inputs.common, c.inputs.common) << keys;
    EXPECT_EQ(back.inputs.ports, c.inputs.ports) << keys;
    EXPECT_EQ(back.seed, c.seed) << keys;
  }
}

TEST(CaseJson, short_form_has_defaults) {
  const Case c = case_from_json(
      json::parse(R"({"op": "gemm", "params": {"m": 1, "n": 1, "k": 1}, "mode": "bf16", "backend": "auto"})"),
      &testing::lookup);
  EXPECT_EQ(c.digest, only_case("\"tags\": []").digest);
}

std::string refusal(const std::string& text) {
  try {
    return "accepted as " + case_from_json(json::parse(text), &testing::lookup).id;
  } catch (const PlanError& error) {
    std::string all;
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      all += render(diagnostic);
    }
    return all;
  }
}

/// A legal case with one key replaced.
std::string altered(const std::string& key, const std::string& value) {
  json object = json::parse(R"({"op": "gemm", "params": {"m": 1, "n": 1, "k": 1}, "mode": "bf16", "backend": "sim"})");
  object[key] = json::parse(value);
  return refusal(object.dump());
}

TEST(CaseJson, is_strict) {
  EXPECT_EQ(refusal("[]"), "error: a case must be an object, not a list\n");
  EXPECT_EQ(refusal("{}"),
            "error: this case has no \"op\"\nerror: this case has no \"mode\"\nerror: this case has no \"backend\"\n");
  EXPECT_EQ(altered("op", "1"), "error: \"op\" must be a string\n   at /op\n");
  EXPECT_EQ(altered("op", "\"gem\""), "error: unknown op \"gem\"\n   at /op\n");
  EXPECT_EQ(altered("id", "1").substr(0, 24), "error: unknown key \"id\"\n");
  EXPECT_EQ(altered("backend", "\"../sim\""), "error: \"backend\" must be the name of a backend\n   at /backend\n");
  EXPECT_EQ(altered("params", "[]"), "error: \"params\" must be an object, not a list\n   at /params\n");
  EXPECT_EQ(altered("params", R"({"m": [1, 2], "n": 1, "k": 1})"),
            "error: \"m\" must be an integer, not a list\n   at /params/m\n");
  EXPECT_EQ(altered("params", R"({"m": 1, "n": 1})"), "error: gemm needs \"k\": reduction length\n   at /params\n");
  EXPECT_EQ(altered("params", R"({"m": 1, "n": 1, "k": 1, "q": 1})").substr(0, 23), "error: unknown key \"q\"\n");
  EXPECT_EQ(altered("params", R"({"m": 1, "n": 1, "k": 1, "output": "fp16"})"),
            "error: gemm: mode bf16 has no output \"fp16\"; it has bf16 and fp32\n   at /params\n");
  EXPECT_EQ(altered("params", R"({"m": 1, "n": 1, "k": 1, "in_place": true})"),
            "error: gemm: in_place says that C is D, but with beta = 0 there is no C\n   at /params\n");
  EXPECT_EQ(altered("params", R"({"m": 1, "n": 1, "k": 1, "in_place": 1})").substr(0, 50),
            "error: \"in_place\" must be true or false, not a num");
  EXPECT_EQ(altered("mode", "[\"bf16\"]"), "error: \"mode\" must be a string, not a list\n   at /mode\n");
  EXPECT_EQ(altered("mode", "\"mxfp8\"").substr(0, 28), "error: unknown mode \"mxfp8\"\n");
  EXPECT_EQ(altered("seed", "1.0"), "error: \"seed\" must be an integer, not 1.0\n   hint: write 1\n   at /seed\n");
  EXPECT_EQ(altered("seed_in_id", "1"),
            "error: \"seed_in_id\" must be true or false, not a number\n   at /seed_in_id\n");
  EXPECT_EQ(altered("inputs", R"({"c": {"distribution": "uniform"}})"),
            "error: gemm has no input \"c\" with these parameters\n   at /inputs\n");
  EXPECT_EQ(altered("environment", R"({"LD_PRELOAD": "x"})").substr(0, 61),
            "error: \"LD_PRELOAD\" is not a variable that a plan may set\n   ");
  EXPECT_EQ(altered("algorithms", "\"some\"").substr(0, 42), "error: unknown choice of algorithms \"some\"");
}

TEST(CaseJson, deep_nesting_is_refused) {
  std::string text = R"({"op": )" + std::string(200, '[') + std::string(200, ']') + "}";
  EXPECT_EQ(refusal(text), "error: lists and objects are nested more than 64 deep\n");
}

TEST(Inputs, ports_without_their_own_distribution_use_the_common_one) {
  const Case c = only_case(R"("inputs": {"distribution": "uniform", "a": {"distribution": "positive"}})");
  EXPECT_EQ(c.inputs.of("a").name, "positive");
  EXPECT_EQ(c.inputs.of("b").name, "uniform");
  EXPECT_FALSE(c.inputs.exact_leg());
  EXPECT_TRUE(only_case(R"("inputs": {"distribution": "exact"})").inputs.exact_leg());
}

}  // namespace
}  // namespace numcheck::plan
