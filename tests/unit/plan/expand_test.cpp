// Axes, ranges, zip, exclude, xfail, defaults: the cases of a plan and their order.
#include <algorithm>

#include <gtest/gtest.h>

#include "support.hpp"

namespace numcheck::plan {
namespace {

using Ids = std::vector<std::string>;

Plan load_case(std::string_view keys) {
  return testing::load(testing::with_case(keys));
}

/// Values of one parameter over the cases.
template <class T>
std::vector<T> values(const Plan& plan, std::string_view name) {
  std::vector<T> all;
  for (const Case& c : plan.cases) {
    all.push_back(std::get<T>(c.params[*op::field_index(*c.op, name)]));
  }
  return all;
}

TEST(Expand, everything_has_a_default) {
  const Plan plan =
      testing::load(R"({"version": 1, "cases": [{"op": "gemm", "params": {"m": 2, "n": 3, "k": 4}, "mode": "bf16"}]})");
  ASSERT_EQ(plan.cases.size(), 1U);
  const Case& c = plan.cases[0];
  EXPECT_EQ(plan.name, "plan");
  EXPECT_EQ(plan.description, "");
  EXPECT_EQ(plan.seed, 0U);
  EXPECT_EQ(plan.digest.size(), 32U);
  EXPECT_EQ(c.op->name, "gemm");
  EXPECT_EQ(c.params.size(), c.op->fields().size());
  EXPECT_EQ(c.mode->name, "bf16");
  EXPECT_EQ(c.backend, "auto");
  EXPECT_EQ(c.inputs.common, data::make_distribution("normal"));
  EXPECT_TRUE(c.inputs.ports.empty());
  EXPECT_FALSE(c.inputs.exact_leg());
  EXPECT_EQ(c.seed, 0U);
  EXPECT_FALSE(c.seed_in_id);
  EXPECT_TRUE(c.environment.empty());
  EXPECT_EQ(c.algorithms.kind, AlgorithmSpec::Kind::heuristic);
  EXPECT_FALSE(c.tolerance.allclose_rtol || c.tolerance.allclose_atol || c.tolerance.max_ulp || c.tolerance.rel_l2);
  EXPECT_TRUE(c.tags.empty());
  EXPECT_TRUE(c.known_issues.empty());
  EXPECT_FALSE(c.timeout_s);
  EXPECT_EQ(c.id, "gemm/m=2,n=3,k=4/bf16/auto");
}

TEST(Expand, axes_multiply_the_last_fastest) {
  const Plan plan = load_case(R"("params": {"n": [5, 6], "m": [1, 2]}, "mode": ["tf32", "fp32"],
    "environment": [{"NVIDIA_TF32_OVERRIDE": null}, {"NVIDIA_TF32_OVERRIDE": "0"}])");
  EXPECT_EQ(plan.cases.size(), 16U);
  EXPECT_EQ(testing::ids(plan)[0], "gemm/m=1,n=5,k=1/tf32/auto/NVIDIA_TF32_OVERRIDE=unset");
  EXPECT_EQ(testing::ids(plan)[1], "gemm/m=1,n=5,k=1/tf32/auto/NVIDIA_TF32_OVERRIDE=0");
  EXPECT_EQ(testing::ids(plan)[2], "gemm/m=1,n=5,k=1/fp32/auto/NVIDIA_TF32_OVERRIDE=unset");
  EXPECT_EQ(testing::ids(plan)[4], "gemm/m=1,n=6,k=1/tf32/auto/NVIDIA_TF32_OVERRIDE=unset");
  EXPECT_EQ(testing::ids(plan)[8], "gemm/m=2,n=5,k=1/tf32/auto/NVIDIA_TF32_OVERRIDE=unset");
}

TEST(Expand, ranges_are_inclusive) {
  EXPECT_EQ(values<std::int64_t>(load_case(R"("params": {"m": {"from": 3, "to": 6}})"), "m"),
            (std::vector<std::int64_t>{3, 4, 5, 6}));
  EXPECT_EQ(values<std::int64_t>(load_case(R"("params": {"m": {"from": 1, "to": 10, "step": 4}})"), "m"),
            (std::vector<std::int64_t>{1, 5, 9}));
  EXPECT_EQ(values<std::int64_t>(load_case(R"("params": {"m": {"from": 9, "to": 1, "step": -4}})"), "m"),
            (std::vector<std::int64_t>{9, 5, 1}));
  EXPECT_EQ(values<std::int64_t>(load_case(R"("params": {"m": {"from": 7, "to": 7}})"), "m"),
            (std::vector<std::int64_t>{7}));
  EXPECT_EQ(values<std::int64_t>(load_case(R"("params": {"m": {"pow2": [0, 3]}})"), "m"),
            (std::vector<std::int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(values<std::int64_t>(load_case(R"("params": {"m": {"pow2": [30, 30]}})"), "m"),
            (std::vector<std::int64_t>{1 << 30}));
  EXPECT_EQ(values<double>(load_case(R"("params": {"alpha": {"pow2": [-2, 1]}})"), "alpha"),
            (std::vector<double>{0.25, 0.5, 1, 2}));
  const auto tenths = values<double>(load_case(R"("params": {"alpha": {"from": 0, "to": 1, "step": 0.1}})"), "alpha");
  ASSERT_EQ(tenths.size(), 11U) << "nine additions of 0.1 fall short of 1, the range must not";
  EXPECT_DOUBLE_EQ(tenths.back(), 1.0);
}

TEST(Expand, lists_may_hold_ranges) {
  EXPECT_EQ(values<std::int64_t>(load_case(R"("params": {"m": [100, {"pow2": [1, 2]}, {"from": 7, "to": 8}]})"), "m"),
            (std::vector<std::int64_t>{100, 2, 4, 7, 8}));
}

TEST(Expand, booleans_and_choices_are_axes_too) {
  const Plan plan = load_case(R"("params": {"trans_b": [false, true], "epilogue": ["none", "gelu"]})");
  EXPECT_EQ(testing::ids(plan), (Ids{"gemm/m=1,n=1,k=1/bf16/auto", "gemm/m=1,n=1,k=1,epi=gelu/bf16/auto",
                                     "gemm/m=1,n=1,k=1,tb=1/bf16/auto", "gemm/m=1,n=1,k=1,tb=1,epi=gelu/bf16/auto"}));
}

TEST(Expand, zip_ties_axes) {
  const Plan plan = load_case(R"("params": {"m": [1, 2], "n": [8, 9], "k": [3, 4]}, "zip": [["k", "m"]])");
  EXPECT_EQ(testing::ids(plan), (Ids{"gemm/m=1,n=8,k=3/bf16/auto", "gemm/m=1,n=9,k=3/bf16/auto",
                                     "gemm/m=2,n=8,k=4/bf16/auto", "gemm/m=2,n=9,k=4/bf16/auto"}));
}

TEST(Expand, zip_ties_every_kind_of_axis) {
  const Plan plan = load_case(R"("params": {"m": {"from": 1, "to": 2}}, "mode": ["bf16", "fp32"], "seed": [4, 5],
    "backend": ["sim", "cuda"], "inputs": [{}, {"distribution": "exact"}],
    "environment": [{}, {"NVIDIA_TF32_OVERRIDE": "1"}],
    "zip": [["environment", "m", "mode", "inputs", "backend", "seed"]])");
  EXPECT_EQ(testing::ids(plan), (Ids{"gemm/m=1,n=1,k=1/bf16/sim/seed=4",
                                     "gemm/m=2,n=1,k=1/fp32/cuda/exact/seed=5/NVIDIA_TF32_OVERRIDE=1"}));
}

TEST(Expand, zip_makes_huge_ranges_small) {
  Limits limits;
  limits.max_cases = 1000;
  const std::string text = testing::with_case(
      R"("params": {"m": {"from": 1, "to": 1000}, "n": {"from": 1, "to": 1000}}, "zip": [["m", "n"]])");
  EXPECT_EQ(testing::load(text, limits).cases.size(), 1000U);
}

TEST(Expand, exclude_removes_what_matches_all_keys) {
  const Plan plan = load_case(R"("params": {"m": [1, 2], "output": ["default", "fp32"]}, "mode": ["bf16", "fp16"],
    "exclude": [{"mode": "bf16", "m": 2}, {"mode": ["fp16", "fp32"], "output": "fp32", "m": [1, 7]}])");
  EXPECT_EQ(testing::ids(plan),
            (Ids{"gemm/m=1,n=1,k=1/bf16/auto", "gemm/m=1,n=1,k=1/fp16/auto", "gemm/m=1,n=1,k=1,out=fp32/bf16/auto",
                 "gemm/m=2,n=1,k=1/fp16/auto", "gemm/m=2,n=1,k=1,out=fp32/fp16/auto"}));
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(Expand, exclude_by_inputs_backend_and_environment) {
  const Plan plan = load_case(R"("inputs": [{}, {"distribution": "exact"}], "backend": ["sim", "cuda"],
    "environment": [{}, {"NVIDIA_TF32_OVERRIDE": "0"}, {"NVIDIA_TF32_OVERRIDE": null}],
    "exclude": [{"inputs": "exact", "backend": "cuda"}, {"environment": {"NVIDIA_TF32_OVERRIDE": "0"}},
                {"environment": [{"NVIDIA_TF32_OVERRIDE": null}], "backend": "sim"}])");
  EXPECT_EQ(testing::ids(plan),
            (Ids{"gemm/m=1,n=1,k=1/bf16/sim", "gemm/m=1,n=1,k=1/bf16/cuda",
                 "gemm/m=1,n=1,k=1/bf16/cuda/NVIDIA_TF32_OVERRIDE=unset", "gemm/m=1,n=1,k=1/bf16/sim/exact"}));
}

TEST(Expand, excluded_combinations_may_be_illegal) {
  const Plan plan = load_case(R"("params": {"output": ["bf16", "fp8_e5m2"]}, "mode": ["fp8_e4m3", "fp8_hybrid"],
    "exclude": [{"mode": "fp8_e4m3", "output": "fp8_e5m2"}])");
  EXPECT_EQ(plan.cases.size(), 3U);
}

TEST(Expand, xfail_marks_what_matches) {
  const Plan plan = load_case(R"("params": {"m": [1, 2, 3]},
    "xfail": [{"match": {"m": 2}, "reason": "tracked as 12", "expires": "2026-02-28"},
              {"match": {"m": [2, 3]}, "reason": "other"}])");
  ASSERT_EQ(plan.cases.size(), 3U);
  EXPECT_TRUE(plan.cases[0].known_issues.empty());
  ASSERT_EQ(plan.cases[1].known_issues.size(), 2U);
  EXPECT_EQ(plan.cases[1].known_issues[0].reason, "tracked as 12") << "in plan order";
  EXPECT_EQ(plan.cases[1].known_issues[0].expires, "2026-02-28");
  ASSERT_EQ(plan.cases[2].known_issues.size(), 1U);
  EXPECT_EQ(plan.cases[2].known_issues[0].expires, "");
  EXPECT_EQ(load_case(R"("xfail": [{"reason": "all of them", "cause": "c"}])").cases[0].known_issues[0].cause, "c");
  const Plan on_devices = load_case(R"("xfail": [
    {"match": {"architecture": ["sm_80", {"from": "sm_89", "to": "sm_90"}], "libraries": {"cublaslt": "13.1"}},
     "reason": "12"},
    {"match": {"libraries": {"driver": [{"from": "580"}, "570.1"], "$comment": "c"}}, "reason": "13"},
    {"reason": "14"}])");
  const Case& c = on_devices.cases[0];
  EXPECT_EQ(known_issues_on(c, {}).front().reason, "14") << "the first that every device has";
  ASSERT_EQ(c.known_issues.size(), 3U);
  EXPECT_EQ(c.known_issues[0].where.architectures, (std::vector<ArchitectureRange>{{80, 80}, {89, 90}}));
  EXPECT_EQ(c.known_issues[0].where.libraries, (std::vector<LibraryCondition>{{"cublaslt", {{{13, 1}, {13, 1}}}}}));
  EXPECT_EQ(c.known_issues[1].where.libraries,
            (std::vector<LibraryCondition>{{"driver", {{{580}, {}}, {{570, 1}, {570, 1}}}}}));
}

TEST(Expand, defaults_are_overridden_key_by_key_and_params_by_name) {
  const Plan plan = testing::load(R"({"version": 1, "seed": 5,
    "defaults": {"op": "gemm", "params": {"m": 1, "n": 2, "k": 3, "trans_b": true}, "mode": ["fp32", "tf32"],
                 "inputs": {"distribution": "outliers", "scale": 7}, "environment": {"NVIDIA_TF32_OVERRIDE": "0"},
                 "tolerance": {"ulp": 3}, "tags": ["a"], "timeout_s": 9, "algorithms": "all", "backend": "sim"},
    "cases": [
      {"params": {"k": [4, 5], "trans_b": false}, "mode": "bf16", "inputs": {"distribution": "uniform"},
       "environment": {}, "tolerance": "default", "tags": ["b", "b"], "algorithms": {"top": 4}, "backend": "auto"},
      {}
    ]})");
  ASSERT_EQ(plan.cases.size(), 4U);
  EXPECT_EQ(testing::ids(plan), (Ids{"gemm/m=1,n=2,k=4/bf16/auto/algorithms=top:4/uniform",
                                     "gemm/m=1,n=2,k=5/bf16/auto/algorithms=top:4/uniform",
                                     "gemm/m=1,n=2,k=3,tb=1/fp32/sim/algorithms=all/outliers(scale=7)/"
                                     "NVIDIA_TF32_OVERRIDE=0",
                                     "gemm/m=1,n=2,k=3,tb=1/tf32/sim/algorithms=all/outliers(scale=7)/"
                                     "NVIDIA_TF32_OVERRIDE=0"}));
  EXPECT_FALSE(plan.cases[0].tolerance.max_ulp);
  EXPECT_EQ(plan.cases[0].tags, (std::vector<std::string>{"b"}));
  EXPECT_EQ(plan.cases[0].timeout_s, 9.0);
  EXPECT_EQ(plan.cases[0].seed, 5U);
  EXPECT_EQ(plan.cases[2].tolerance.max_ulp, 3.0);
  EXPECT_EQ(plan.cases[2].tags, (std::vector<std::string>{"a"}));
}

TEST(Expand, entries_of_defaults_need_not_match_everywhere) {
  const Plan plan = testing::load(R"({"version": 1,
    "defaults": {"op": "gemm", "params": {"m": 1, "n": 1, "k": 1}, "exclude": [{"mode": "tf32"}],
                 "xfail": [{"match": {"mode": "fp16"}, "reason": "12"}]},
    "cases": [{"mode": ["tf32", "bf16"]}, {"mode": "fp16"}]})");
  EXPECT_EQ(testing::ids(plan), (Ids{"gemm/m=1,n=1,k=1/bf16/auto", "gemm/m=1,n=1,k=1/fp16/auto"}));
  EXPECT_TRUE(plan.warnings.empty());
  EXPECT_FALSE(plan.cases[1].known_issues.empty());
}

TEST(Expand, tolerance_in_all_its_forms) {
  const Case c = load_case(R"("tolerance": {"allclose": {"rtol": 1e-2, "atol": 0}, "ulp": 2, "rel_l2": 0.5,
      "min_judged": 0.25})")
                     .cases[0];
  EXPECT_EQ(c.tolerance.allclose_rtol, 1e-2);
  EXPECT_EQ(c.tolerance.allclose_atol, 0.0);
  EXPECT_EQ(c.tolerance.max_ulp, 2.0);
  EXPECT_EQ(c.tolerance.rel_l2, 0.5);
  EXPECT_EQ(c.tolerance.min_judged, 0.25);
}

TEST(Expand, repeated_cases_run_once_with_all_their_tags) {
  const Plan plan = testing::load(R"({"version": 1,
    "defaults": {"op": "gemm", "params": {"m": 1, "n": 1, "k": 1}, "mode": "bf16"},
    "cases": [{"tags": ["a"]}, {"tags": ["b", "a"]}]})");
  ASSERT_EQ(plan.cases.size(), 1U);
  EXPECT_EQ(plan.cases[0].tags, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(plan.warnings.size(), 1U);
}

TEST(Expand, ports_that_a_case_lacks_are_left_out_of_it) {
  const Plan plan = load_case(R"("params": {"beta": [0, 1]},
    "inputs": {"c": {"distribution": "constant", "value": 3}, "a": {"distribution": "normal"}})");
  EXPECT_EQ(testing::ids(plan),
            (Ids{"gemm/m=1,n=1,k=1/bf16/auto", "gemm/m=1,n=1,k=1,beta=1/bf16/auto/c=constant(value=3)"}));
}

TEST(Expand, comments_are_allowed_everywhere) {
  const Plan plan = testing::load(R"(// a plan
    {"version": 1, "$comment": [1], "$schema": "x", "defaults": {"$comment": 1, "op": "gemm", "params": {"$comment": 2}}, /* all
      of it */ "cases": [{"$comment": {"a": null}, "params": {"$comment": "p", "m": 1, "n": 1,
      "k": {"$comment": "r", "from": 1, "to": 2}}, "mode": "bf16",
      "inputs": {"$comment": "i", "a": {"$comment": "port", "distribution": "uniform"}},
      "environment": {"$comment": "e"}, "algorithms": {"$comment": "g", "top": 2},
      "tolerance": {"$comment": "t", "allclose": {"$comment": "c", "rtol": 0, "atol": 0}},
      "exclude": [{"$comment": "x", "k": 2}],
      "xfail": [{"$comment": "f", "reason": "12", "match": {"$comment": "m", "k": 1}}]}]} // end)");
  EXPECT_EQ(testing::ids(plan), (Ids{"gemm/m=1,n=1,k=1/bf16/auto/algorithms=top:2/a=uniform"}));
}

TEST(Expand, byte_order_mark_and_windows_line_ends) {
  const std::string text =
      "\xEF\xBB\xBF{\"version\": 1,\r\n\"cases\": [{\"op\": \"gemm\", \"params\": {\"m\": 1, "
      "\"n\": 1, \"k\": 1},\r\n \"mode\": \"bf16\"}]}\r\n";
  EXPECT_EQ(testing::load(text).cases.size(), 1U);
}

}  // namespace
}  // namespace numcheck::plan
