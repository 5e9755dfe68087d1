// Slices of k that a library declares to add in the output's format excuse what their bits show, and nothing else.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/distribution.hpp"
#include "mini_run.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::detect {
namespace {

op::GemmParams product(std::int64_t k) {
  op::GemmParams p;
  p.m = 72;
  p.n = 56;
  p.k = k;
  return p;
}

op::GemmParams with(op::GemmParams p, std::string epilogue, bool bias, double beta = 0) {
  p.epilogue = std::move(epilogue);
  p.bias = bias;
  p.beta = beta;
  return p;
}

plan::Case make_case(std::string_view mode, const op::GemmParams& p) {
  plan::Case c;
  c.op = &op::gemm();
  c.mode = op::find_mode(mode);
  c.params = op::to_params(p);
  c.backend = "sim";
  c.inputs.common = data::make_distribution("normal");
  c.algorithms.kind = plan::AlgorithmSpec::Kind::all;
  c.seed = 7;
  plan::identify(c);
  return c;
}

/// All algorithms of the simulated device: some of them add slices in the output's format, and declare it.
std::vector<verdict::RunResult> run(const plan::Case& c, const std::string& fault,
                                    const std::optional<model::DeclaredRounding>& declared = {}) {
  MiniRunner runner;
  return runner.run(c, 90, {.inject = fault, .classify = false}, declared).runs;
}

op::GemmParams scaled(op::GemmParams p, double alpha) {
  p.alpha = alpha;
  return p;
}

const std::vector<op::GemmParams>& products() {
  static const std::vector<op::GemmParams> all = {product(1024), with(product(1000), "relu", true),
                                                  scaled(with(product(1024), "none", true, 0.5), 0.3),
                                                  scaled(with(product(512), "gelu", true), 0.0625)};
  return all;
}

TEST(Slices, that_are_declared_and_rounded_are_warnings) {
  for (const std::string_view mode : {"bf16", "fp16"}) {
    for (const op::GemmParams& p : products()) {
      int sliced = 0;
      for (const verdict::RunResult& result : run(make_case(mode, p), "")) {
        const bool declared = result.run.rounding.slices > 1;
        EXPECT_EQ(result.status, declared ? verdict::Status::warn : verdict::Status::pass)
            << result.run.label << ' ' << mode << ' ' << p.epilogue << ": " << result.failing;
        if (declared) {
          ++sliced;
          EXPECT_NE(result.failing.find("slices of k are added in"), std::string::npos) << result.failing;
          ASSERT_FALSE(result.outputs.front().findings.empty());
          EXPECT_GT(result.outputs.front().findings.back().measured, 0.98)
              << result.outputs.front().findings.back().text;
        }
      }
      EXPECT_EQ(sliced, 2);
    }
  }
}

plan::Case fp16_case(double sigma, const op::GemmParams& p) {
  plan::Case c = make_case("fp16", p);
  c.inputs.common.params = {sigma};
  plan::identify(c);
  return c;
}

// FP16 numbers below 2^-14 are evenly spaced: a slice errs as much as the sum.
TEST(Slices, of_subnormal_numbers_are_warnings_too) {
  for (const op::GemmParams& p : {product(200), product(1024), scaled(product(512), 3), scaled(product(512), 0.125)}) {
    for (const double sigma : {0x1p-10, 0x1p-12}) {
      for (const verdict::RunResult& result : run(fp16_case(sigma, p), "")) {
        EXPECT_EQ(result.status, result.run.rounding.slices > 1 ? verdict::Status::warn : verdict::Status::pass)
            << result.run.label << ' ' << p.k << ' ' << p.alpha << ' ' << sigma << ": " << result.failing;
      }
      for (const verdict::RunResult& result : run(fp16_case(sigma, p), "perturb_all=0.02")) {
        EXPECT_EQ(result.status, verdict::Status::fail) << result.run.label << ' ' << p.k << ' ' << sigma;
      }
    }
  }
}

// Of so many ways to cut k and to add C and bias, most give the same bits where relu leaves nothing.
TEST(Slices, beside_bias_and_relu_are_found_among_all_ways) {
  for (const auto& [k, sigma, seed] : {std::tuple(2048, 0x1p-11, 6), {4096, 0x1p-10, 4}, {4096, 0x1p-12, 6}}) {
    op::GemmParams p = with(product(k), "relu", true);
    p.m = 64;
    p.n = 70;
    p.trans_b = true;
    plan::Case c = fp16_case(sigma, p);
    c.seed = static_cast<std::uint64_t>(seed);
    plan::identify(c);
    for (const verdict::RunResult& result : run(c, "")) {
      EXPECT_NE(result.status, verdict::Status::fail) << result.run.label << ' ' << k << ": " << result.failing;
    }
  }
}

// All products are one number: elements differ by their bias alone, and those of a column not at all.
TEST(Slices, of_equal_products_are_told_by_different_columns) {
  op::GemmParams p = with(product(1000), "gelu", true);
  p.m = 32;
  p.n = 87;
  plan::Case c = fp16_case(0x1p-13, p);
  for (const auto& [port, value] : {std::pair("a", 0.1), std::pair("b", 0x1p-8)}) {
    c.inputs.ports[port] = data::make_distribution("constant");
    c.inputs.ports[port].params = {value};
  }
  c.seed = 113140203;
  plan::identify(c);
  for (const verdict::RunResult& result : run(c, "")) {
    EXPECT_NE(result.status, verdict::Status::fail) << result.run.label << ": " << result.failing;
  }
}

// Sums that lie between two numbers may go either way, but not most of them the wrong one.
TEST(Slices, of_structured_operands_excuse_no_factor) {
  op::GemmParams p = product(500);
  p.m = 70;
  p.n = 130;
  plan::Case c = make_case("fp16", p);
  c.inputs.common = data::make_distribution("structured");
  c.seed = 1;
  plan::identify(c);
  for (const verdict::RunResult& result : run(c, "perturb_all=0.001")) {
    EXPECT_EQ(result.status, verdict::Status::fail) << result.run.label << ": " << result.failing;
  }
}

TEST(Slices, excuse_no_other_fault) {
  for (const std::string_view mode : {"bf16", "fp16"}) {
    for (const op::GemmParams& p : products()) {
      for (const char* fault : {"fp16_accumulation", "truncated_output", "scale_1_01", "perturb_all=1e-3",
                                "perturb_noise=1e-3", "missing_k_tail", "unreduced_split_k"}) {
        for (const verdict::RunResult& result : run(make_case(mode, p), fault)) {
          EXPECT_EQ(result.status, verdict::Status::fail)
              << fault << ' ' << result.run.label << ' ' << mode << ' ' << p.epilogue << ": " << result.failing
              << (result.outputs.front().findings.empty() ? "" : result.outputs.front().findings.back().text);
        }
      }
    }
  }
}

TEST(Slices, that_were_not_rounded_excuse_nothing) {
  for (const int slices : {4, 32}) {
    for (const op::GemmParams& p : products()) {
      for (const char* fault : {"fp16_accumulation", "double_rounded_output", "truncated_output", "perturb_all=1e-3"}) {
        plan::Case c = make_case("bf16", p);
        c.algorithms.kind = plan::AlgorithmSpec::Kind::heuristic;
        for (const verdict::RunResult& result :
             run(c, fault, model::DeclaredRounding{.slices = slices, .gelu = p.epilogue == "gelu"})) {
          EXPECT_EQ(result.status, verdict::Status::fail) << fault << ' ' << slices << ": " << result.failing;
        }
      }
    }
  }
}

/// Of the algorithm that rounds its slices, as if it had declared other roundings besides.
verdict::RunResult run_sliced(const plan::Case& c, const std::string& fault, model::DeclaredRounding declared) {
  constexpr std::size_t kOutputType = 3;
  declared.slices = 4;
  return run(c, fault, declared).at(kOutputType);
}

TEST(Slices, may_be_declared_with_a_rounded_sum) {
  for (const char* epilogue : {"none", "relu", "gelu"}) {
    const plan::Case c = make_case("bf16", scaled(with(product(1024), epilogue, true), 0.0625));
    const model::DeclaredRounding epilogue_too = {.bias = true, .gelu = epilogue == std::string_view("gelu")};
    const verdict::RunResult both = run_sliced(c, "sum_rounded", epilogue_too);
    EXPECT_EQ(both.status, verdict::Status::warn) << epilogue << ": " << both.failing;
    EXPECT_NE(both.failing.find("slices of k"), std::string::npos) << both.failing;
    EXPECT_NE(both.failing.find("before the epilogue"), std::string::npos) << both.failing;
    EXPECT_EQ(run_sliced(c, "sum_rounded", {}).status, verdict::Status::fail) << epilogue << ", not declared";
    for (const char* fault : {"truncated_output", "perturb_all=1e-3", "fp16_accumulation", "scale_1_01"}) {
      EXPECT_EQ(run_sliced(c, fault, epilogue_too).status, verdict::Status::fail) << fault << ' ' << epilogue;
    }
  }
}

TEST(Slices, excuse_no_fault_of_one_row_or_tile) {
  op::GemmParams p = product(1024);
  p.m = 192;
  p.n = 128;
  for (const char* fault : {"perturb_row=1e-2", "perturb_tile=1e-3"}) {
    for (const verdict::RunResult& result : run(make_case("bf16", p), fault)) {
      EXPECT_EQ(result.status, verdict::Status::fail) << fault << ' ' << result.run.label << ": " << result.failing;
      if (result.run.rounding.slices > 1 && std::string_view(fault) == "perturb_tile=1e-3") {
        const std::string& text = result.outputs.front().findings.back().text;
        EXPECT_NE(text.find("too many of them are of 64 x 64 tile 3 ("), std::string::npos) << text;
      }
    }
  }
}

plan::Case tiny(std::int64_t m, std::int64_t n, std::uint64_t seed) {
  op::GemmParams p = product(1024);
  p.m = m;
  p.n = n;
  plan::Case c = make_case("bf16", p);
  c.seed = seed;
  plan::identify(c);
  return c;
}

/// A finding of that name; null if there is none.
const op::Finding* finding_named(const verdict::RunResult& result, std::string_view name) {
  for (const verdict::OutputResult& output : result.outputs) {
    const auto found = std::ranges::find(output.findings, name, &op::Finding::name);
    if (found != output.findings.end()) {
      return &*found;
    }
  }
  return nullptr;
}

// A NaN for a finite product is wrong however it came about, but it is known how.
TEST(Slices, that_overflow_are_wrong_and_named) {
  for (const auto& [sigma, alpha] : {std::pair(40.0, 1.0), std::pair(100.0, 1.0), std::pair(100.0, 0.01)}) {
    int overflowing = 0;
    for (const verdict::RunResult& result : run(fp16_case(sigma, scaled(product(1508), alpha)), "")) {
      if (result.run.rounding.slices > 1) {
        EXPECT_EQ(result.status, verdict::Status::fail) << sigma << ' ' << result.run.label;
        const op::Finding* finding = finding_named(result, "slices_overflow");
        ASSERT_NE(finding, nullptr) << sigma << ' ' << alpha << ' ' << result.run.label << ": " << result.failing;
        EXPECT_EQ(finding->cause, "sums of slices of k overflow in fp16");
        ++overflowing;
      } else {
        EXPECT_EQ(finding_named(result, "slices_overflow"), nullptr) << result.run.label;
      }
    }
    EXPECT_EQ(overflowing, 2);
  }
}

// relu makes zeros of NaN and of negative infinities, which are numbers.
TEST(Slices, that_overflow_beneath_relu_are_named) {
  for (const double alpha : {1.0, -1.0}) {
    int overflowing = 0, zeros = 0;
    for (const verdict::RunResult& result :
         run(fp16_case(100, scaled(with(product(1508), "relu", false), alpha)), "")) {
      if (result.run.rounding.slices > 1) {
        EXPECT_EQ(result.status, verdict::Status::fail) << result.run.label;
        const std::vector<op::Finding>& findings = result.outputs.front().findings;
        const auto count = [&findings](op::Finding::About about) {
          return std::ranges::count_if(findings, [about](const op::Finding& finding) {
            return finding.name == "slices_overflow" && finding.about == about;
          });
        };
        overflowing += static_cast<int>(count(op::Finding::About::pattern));
        zeros += static_cast<int>(count(op::Finding::About::numbers));
      }
    }
    EXPECT_EQ(overflowing, 2) << alpha;
    EXPECT_GT(zeros, 0) << alpha;
  }
}

TEST(Slices, that_cannot_overflow_explain_no_zeros_beneath_relu) {
  for (const auto& [sigma, alpha] : {std::pair(3.0, 1.0), std::pair(20.0, -1.0)}) {
    const op::GemmParams p = scaled(with(product(1024), "relu", false), alpha);
    for (const char* fault : {"element_zero", "inf_written"}) {
      for (const verdict::RunResult& result : run(fp16_case(sigma, p), fault)) {
        EXPECT_EQ(result.status, verdict::Status::fail) << fault << ' ' << alpha << ' ' << result.run.label;
        EXPECT_EQ(finding_named(result, "slices_overflow"), nullptr)
            << fault << ' ' << alpha << ' ' << result.run.label;
      }
    }
  }
}

// Sums of positive numbers overflow to infinity, of which relu makes no zero.
TEST(Slices, that_overflow_upwards_explain_no_zeros_beneath_relu) {
  for (const double alpha : {0.1, 1.0}) {
    plan::Case c = fp16_case(1, scaled(with(product(1508), "relu", false), alpha));
    c.inputs.common = data::make_distribution("uniform");
    c.inputs.common.params.at(0) = 5.0;
    c.inputs.common.params.at(1) = 15.0;
    plan::identify(c);
    for (const char* fault : {"element_zero", "all_zero"}) {
      for (const verdict::RunResult& result : run(c, fault)) {
        EXPECT_EQ(result.status, verdict::Status::fail) << fault << ' ' << alpha << ' ' << result.run.label;
        const std::vector<op::Finding>& findings = result.outputs.front().findings;
        EXPECT_TRUE(std::ranges::none_of(findings,
                                         [](const op::Finding& finding) {
                                           return finding.name == "slices_overflow" &&
                                                  finding.about == op::Finding::About::numbers;
                                         }))
            << fault << ' ' << alpha << ' ' << result.run.label;
      }
    }
  }
}

TEST(Slices, that_cannot_overflow_explain_no_nan) {
  for (const double sigma : {3.0, 20.0}) {  // all magnitudes add up to more than 65504 of the latter
    for (const char* fault : {"nan_written", "inf_written", "all_nan"}) {
      for (const verdict::RunResult& result : run(fp16_case(sigma, product(1024)), fault)) {
        EXPECT_EQ(result.status, verdict::Status::fail);
        EXPECT_EQ(finding_named(result, "slices_overflow"), nullptr)
            << fault << ' ' << sigma << ' ' << result.run.label;
      }
    }
  }
}

TEST(Slices, of_groups_that_cannot_overflow_explain_no_nan) {
  for (const double sigma : {1.0, 30.0}) {
    op::GroupedGemmParams p;
    p.groups = 2;
    p.m = "40+30";
    p.n = "50";
    p.k = "16+1508";  // of which only the second can overflow
    plan::Case c = fp16_case(sigma, product(1));
    c.op = &op::grouped_gemm();
    c.params = op::to_params(p);
    plan::identify(c);
    for (const verdict::RunResult& result : run(c, "nan_written", model::DeclaredRounding{.slices = 4})) {
      EXPECT_EQ(result.status, verdict::Status::fail) << result.failing;
      for (const verdict::OutputResult& output : result.outputs) {
        const auto named = std::ranges::find(output.findings, "slices_overflow", &op::Finding::name);
        EXPECT_TRUE(named == output.findings.end() || (sigma > 1 && output.port == "d1"))
            << output.port << ' ' << sigma;
      }
    }
  }
}

TEST(Slices, of_few_elements_that_cannot_show_them_are_inconclusive) {
  int doubted = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    for (const auto& [m, n] : {std::pair(1, 1), std::pair(2, 2), std::pair(4, 5)}) {
      for (const verdict::RunResult& result : run(tiny(m, n, seed), "")) {
        EXPECT_NE(result.status, verdict::Status::fail)
            << m << " x " << n << ", seed " << seed << ": " << result.failing;
        const verdict::OutputResult& output = result.outputs.front();
        if (!output.doubt.empty()) {
          ++doubted;
          EXPECT_EQ(result.status, verdict::Status::inconclusive);
          EXPECT_EQ(result.failing, output.doubt);
          EXPECT_NE(output.doubt.find("are too few to show that"), std::string::npos) << output.doubt;
        }
      }
    }
  }
  EXPECT_GT(doubted, 0);
}

TEST(Slices, of_few_elements_excuse_no_errors_beyond_theirs) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const char* fault : {"perturb_all=0.5", "missing_k_tail"}) {
      for (const verdict::RunResult& result : run(tiny(4, 5, seed), fault)) {
        EXPECT_EQ(result.status, verdict::Status::fail) << fault << ", seed " << seed << ": " << result.failing;
      }
    }
  }
}

TEST(Slices, name_the_elements_that_do_not_fit) {
  const std::vector<verdict::RunResult> all = run(make_case("bf16", product(1024)), "perturb_all=5e-4");
  const op::Finding& finding = all.back().outputs.front().findings.back();
  EXPECT_EQ(finding.name, "declared roundings");
  EXPECT_NE(finding.text.find("3 slices of k are added in bf16, as the library declares, but the bits do not show it"),
            std::string::npos)
      << finding.text;
}

}  // namespace
}  // namespace numcheck::detect
