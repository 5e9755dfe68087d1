// The plans in configs/plans: they load without a warning and contain what they promise.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <variant>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "catalog.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "support.hpp"

namespace numcheck::plan {
namespace {

const std::string kPlans = std::string(TE_NUMCHECK_SOURCE_DIR) + "/configs/plans/";

Plan shipped(const std::string& name) {
  return load_plan(kPlans + name, app::vocabulary(), {});
}

bool is_gemm(const Case& c) {
  return c.op == &op::gemm();
}

op::GemmParams params_of(const Case& c) {
  return op::from_params<op::GemmParams>(c.params);
}

template <class Predicate>
bool any_case(const Plan& plan, Predicate predicate) {
  return std::ranges::any_of(plan.cases, [&](const Case& c) { return is_gemm(c) && predicate(c, params_of(c)); });
}

TEST(ShippedPlans, load_without_warnings) {
  int plans = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kPlans)) {
    if (entry.path().extension() == ".json") {
      const Plan plan = load_plan(entry.path().string(), app::vocabulary(), {});
      // Cases of two of the plans that include ops.json may be equal.
      EXPECT_TRUE(plan.warnings.empty() || plan.name == "ops") << entry.path() << render(plan.warnings.at(0));
      EXPECT_FALSE(plan.cases.empty());
      EXPECT_FALSE(plan.description.empty());
      EXPECT_EQ(plan.name, entry.path().stem());
      ++plans;
    }
  }
  EXPECT_GE(plans, 4);
}

TEST(ShippedPlans, fp8_cases_are_those_that_hopper_supports) {
  for (const char* name : {"quick.json", "standard.json", "bench_gemm.json"}) {
    for (const Case& c : shipped(name).cases) {
      if (is_gemm(c) && c.mode->scaled) {
        const op::GemmParams p = params_of(c);
        EXPECT_TRUE(!p.trans_a && p.trans_b) << c.id;
        for (const std::int64_t dim : {p.n, p.k, p.pad_a, p.pad_b, p.pad_d, p.misalign}) {
          EXPECT_EQ(dim % 16, 0) << c.id;
        }
        // cuBLASLt 13.1 takes any number of rows; TransformerEngine's blocks need multiples of 8 (seen on an H200).
        EXPECT_EQ(p.m % (p.scaling == "tensor" ? 16 : 8), 0) << c.id;
      }
    }
  }
}

TEST(ShippedPlans, sums_of_mlp_epilogues_are_about_one) {
  std::size_t found = 0;
  for (const Case& c : shipped("standard.json").cases) {
    if (is_gemm(c) && params_of(c).epilogue == "gelu") {
      ASSERT_EQ(c.inputs.common.name, "normal") << c.id;
      const double sigma = std::get<double>(c.inputs.common.params.at(0));
      EXPECT_NEAR(sigma * sigma * std::sqrt(static_cast<double>(params_of(c).k)), 1, 0.1)
          << c.id << ": where gelu is x or 0, its forms cannot be told apart";
      ++found;
    }
  }
  EXPECT_GE(found, 8U);
}

TEST(QuickPlan, covers_every_mode_in_both_legs) {
  const Plan plan = shipped("quick.json");
  EXPECT_GE(plan.cases.size(), 40U);
  for (const std::string_view mode : op::gemm().modes) {
    for (const bool exact : {false, true}) {
      EXPECT_TRUE(any_case(plan,
                           [&](const Case& c, const op::GemmParams& p) {
                             return c.mode->name == mode && c.inputs.exact_leg() == exact && p.m > 1 &&
                                    (!exact || c.op->exact_plan(c.params, *c.mode).reason.empty());
                           }))
          << mode << (exact ? " exact" : " random");
    }
  }
  EXPECT_TRUE(std::ranges::all_of(plan.cases, [](const Case& c) { return c.backend == "auto"; }));
  EXPECT_TRUE(std::ranges::all_of(plan.cases, [](const Case& c) { return c.environment.empty(); }))
      << "quick runs in one process too";
}

TEST(QuickPlan, exact_cases_are_exact) {
  for (const Case& c : shipped("quick.json").cases) {
    if (c.inputs.exact_leg()) {
      EXPECT_EQ(c.op->exact_plan(c.params, *c.mode).reason, "") << c.id;
    }
  }
}

TEST(QuickPlan, covers_the_parameters) {
  const Plan plan = shipped("quick.json");
  using P = op::GemmParams;
  const auto has = [&](auto predicate) {
    return any_case(plan, [&](const Case&, const P& p) { return predicate(p); });
  };
  for (const char* epilogue : {"none", "relu", "gelu"}) {
    for (const bool bias : {false, true}) {
      EXPECT_TRUE(has([&](const P& p) { return p.epilogue == epilogue && p.bias == bias; })) << epilogue << bias;
    }
  }
  for (const char* output : {"fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"}) {
    EXPECT_TRUE(has([&](const P& p) { return p.output == output; })) << output;
  }
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      EXPECT_TRUE(has([&](const P& p) { return p.trans_a == ta && p.trans_b == tb; })) << ta << tb;
    }
  }
  for (const char* accumulate : {"fast", "split"}) {
    EXPECT_TRUE(has([&](const P& p) { return p.accumulate == accumulate; })) << accumulate;
  }
  EXPECT_TRUE(has([](const P& p) { return p.m == 1 && p.n == 1 && p.k == 1; }));
  EXPECT_TRUE(has([](const P& p) { return p.k == 1 && p.m > 1; }));
  EXPECT_TRUE(has([](const P& p) { return p.m == 0; }) && has([](const P& p) { return p.n == 0; }));
  EXPECT_TRUE(has([](const P& p) { return p.k == 0 && p.beta != 0; }));
  EXPECT_TRUE(has([](const P& p) { return p.m % 2 == 1 && p.n % 2 == 1 && p.k % 2 == 1 && p.m > 1; }));
  EXPECT_TRUE(has([](const P& p) { return p.pad_a > 0 && p.pad_b > 0 && p.pad_d > 0 && p.misalign > 0; }));
  EXPECT_TRUE(has([](const P& p) { return p.batch > 1; }));
  EXPECT_TRUE(has([](const P& p) { return p.alpha != 1 && p.beta != 0; }));
}

TEST(QuickPlan, is_cheap) {
  double products = 0;
  for (const Case& c : shipped("quick.json").cases) {
    products += c.op->flops(c.params) / 2;
    if (is_gemm(c)) {
      // Blocks of 128 x 128 need more than one of them each way.
      const std::int64_t most = params_of(c).scaling == "tensor" ? 257 : 400;
      EXPECT_LE(std::max({params_of(c).m, params_of(c).n, params_of(c).k}), most) << c.id;
    }
  }
  EXPECT_LE(products, 215e6);  // 2.3 s with eight workers on an H200, as before with 90e6
}

TEST(OverridePlan, runs_every_request_in_three_environments) {
  const Plan plan = shipped("scenarios/tf32_override.json");
  const std::set<std::string_view> modes = {"fp32",          "tf32", "fp32_fast16f", "fp32_fast16bf",
                                            "fp32_pedantic", "bf16", "fp16"};
  const std::vector<std::optional<std::string>> values = {std::nullopt, "0", "1"};
  for (const std::string_view mode : modes) {
    for (const auto& value : values) {
      const auto here = [&](const Case& c) {
        return c.backend == "cublaslt" && c.mode->name == mode && c.environment.at("NVIDIA_TF32_OVERRIDE") == value;
      };
      const auto has = [&](auto predicate) {
        return any_case(plan, [&](const Case& c, const op::GemmParams& p) { return here(c) && predicate(c, p); });
      };
      for (const std::int64_t rows : {128, 1024, 8192}) {
        EXPECT_TRUE(has([&](const Case&, const op::GemmParams& p) {
          return p.m == rows && p.n == 512 && p.k == 128 && p.trans_b && !p.trans_a;
        }));
        for (const char* gradient : {"normal", "constant"}) {
          EXPECT_TRUE(has([&](const Case& c, const op::GemmParams& p) {
            return p.m == rows && p.n == 128 && p.k == 512 && !p.trans_a && !p.trans_b &&
                   c.inputs.of("a").name == gradient;
          }));
          EXPECT_TRUE(has([&](const Case& c, const op::GemmParams& p) {
            return p.m == 512 && p.n == 128 && p.k == rows && p.trans_a && !p.trans_b &&
                   c.inputs.of("a").name == gradient;
          }));
        }
      }
      EXPECT_TRUE(has([](const Case&, const op::GemmParams& p) { return p.m == 4096 && p.n == 4096 && p.k == 4096; }));
    }
  }
  const auto count = [&plan](bool products, bool predictions) {
    return std::ranges::count_if(
        plan.cases, [&](const Case& c) { return is_gemm(c) == products && (c.backend == "sim") == predictions; });
  };
  EXPECT_EQ(count(true, false), 7 * 3 * (3 + 6 + 6 + 1));
  EXPECT_EQ(count(false, false), 3 * 2 * 2 * (2 + 1)) << "attention";
  EXPECT_EQ(count(true, true), 7 * 3 * (2 + 2 + 2));
  EXPECT_EQ(count(false, true), 2 * 2 * 3) << "attention";
}

TEST(Scenarios, show_something_without_a_gpu) {
  for (const auto& entry : std::filesystem::directory_iterator(kPlans + "scenarios")) {
    const Plan plan = load_plan(entry.path().string(), app::vocabulary(), {});
    const auto runs_anywhere = [](const Case& c) { return c.backend == "auto" || c.backend == "sim"; };
    EXPECT_TRUE(std::ranges::any_of(plan.cases, runs_anywhere)) << entry.path();
  }
}

/// The text that a digest is of, in one piece: the case's JSON without its name and without parameters that have their default.
std::string text_of(const Case& c) {
  nlohmann::json json = case_to_json(c);
  json.erase("seed_in_id");
  const std::vector<op::Field>& fields = c.op->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!fields[i].required && c.params[i] == fields[i].fallback) {
      json["params"].erase(std::string(fields[i].name));
    }
  }
  return json.dump();
}

// Baselines hold on to digests, which are put together from parts.
TEST(Digests, are_those_of_the_cases_as_json) {
  for (const char* name : {"quick.json", "standard.json", "ops.json", "te_shapes.json", "acceptance.json"}) {
    for (const Case& c : shipped(name).cases) {
      ASSERT_EQ(c.digest, core::digest_of(text_of(c))) << name << ": " << c.id;
    }
  }
}

TEST(BenchPlan, is_the_product_of_shapes_and_modes) {
  const Plan plan = shipped("bench_gemm.json");
  EXPECT_EQ(plan.cases.size(), 24U);
  for (const Case& c : plan.cases) {
    EXPECT_TRUE(params_of(c).trans_b && c.inputs.common.name == "normal");
    EXPECT_EQ(c.environment, (Environment{{"NVIDIA_TF32_OVERRIDE", std::nullopt}}));
  }
}

TEST(BenchPlan, of_all_ops_is_that_of_the_pytorch_script) {
  EXPECT_EQ(shipped("bench_ops.json").cases.size(), 46U);
}

}  // namespace
}  // namespace numcheck::plan
