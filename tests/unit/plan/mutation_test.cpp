// Random damage to the shipped plans: no crash, no hang, and no exception except PlanError.
#include <algorithm>
#include <ctime>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support.hpp"

namespace numcheck::plan {
namespace {

constexpr int kMutations = 20'000;
// Of processor time, for one text: the largest shipped plan takes about 10 ms.
constexpr double kMaxSeconds = 2;

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    const std::size_t edits = 1 + below(4);
    for (std::size_t i = 0; i < edits && !text.empty(); ++i) {
      edit(text);
    }
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  void edit(std::string& text) {
    static const std::vector<std::string> kTokens = {
        "{",    "}",    "[",       "]",     ",",    ":",    "\"",
        "null", "true", "-1",      "1e3",   "0",    "1e99", "99999999999",
        "//",   "/*",   "\\u0000", "\"m\"", "[[[[", "\"\"", "{\"from\": 1, \"to\": 9}",
        "\n",   "\t",   "NaN"};
    const std::size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(random_());
        break;
      case 1:
        text.erase(at, 1 + below(20));
        break;
      case 2:
        text.insert(at, kTokens[below(kTokens.size())]);
        break;
      case 3: {
        const std::string& token = kTokens[below(kTokens.size())];
        text.replace(at, token.size(), token);
        break;
      }
      case 4:
        text.insert(below(text.size()), text.substr(at, 1 + below(60)));
        break;
      default:
        text.resize(at);
        break;
    }
  }

  std::mt19937 random_;
};

TEST(Mutation, damaged_plans_are_refused_or_read) {
  std::vector<std::string> corpus;
  for (const char* name : {"quick.json", "bench_gemm.json", "scenarios/accumulate_in_place.json"}) {
    corpus.push_back(testing::read_repository_file(std::string("configs/plans/") + name));
  }
  corpus.push_back(testing::with_case(R"("params": {"m": [1, {"pow2": [1, 3]}], "n": {"from": 1, "to": 3}},
    "zip": [["m", "n"]], "exclude": [{"m": 1}], "xfail": [{"match": {"n": 2}, "reason": "12", "expires": "2026-01-01"}],
    "tolerance": {"allclose": {"rtol": 1, "atol": 1}}, "algorithms": {"top": 2}, "tags": ["a"], "seed": [1, 2],
    "inputs": {"a": {"distribution": "outliers"}}, "environment": [{"NVIDIA_TF32_OVERRIDE": "1"}])"));
  Mutator mutator(20250101);
  Limits limits;
  limits.max_cases = 500;
  int accepted = 0;
  double slowest = 0;
  for (int i = 0; i < kMutations; ++i) {
    // The small text more often: its mutations reach every decoder, those of large texts mostly the parser.
    const std::string text = mutator.mutate(corpus[i % 4 == 0 ? static_cast<std::size_t>(i / 4) % 3 : 3]);
    const std::clock_t start = std::clock();
    try {
      const Plan plan = testing::load(text, limits);
      ++accepted;
      for (const Case& c : plan.cases) {
        ASSERT_FALSE(c.id.empty());
        ASSERT_TRUE(c.op->check(c.params, *c.mode).empty()) << text;
      }
    } catch (const PlanError& error) {
      ASSERT_FALSE(error.diagnostics().empty());
      ASSERT_LE(error.diagnostics().size(), kMaxDiagnostics);
      for (const Diagnostic& diagnostic : error.diagnostics()) {
        ASSERT_GT(diagnostic.line, 0U) << diagnostic.text;
        ASSERT_FALSE(diagnostic.text.empty());
      }
    }
    slowest = std::max(slowest, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  EXPECT_GT(accepted, 100) << "some damage is harmless; if none is, the corpus is wrong";
  EXPECT_LT(accepted, kMutations / 2) << "most damage must be noticed";
  EXPECT_LT(slowest, kMaxSeconds);
  RecordProperty("accepted", accepted);
  RecordProperty("slowest_ms", static_cast<int>(slowest * 1e3));
}

TEST(Mutation, damaged_cases_are_refused_or_read) {
  const std::string line =
      case_to_json(
          testing::load(
              testing::with_case(
                  R"("params": {"beta": 1}, "inputs": {"a": {"distribution": "outliers"}}, "algorithms": {"top": 2}, "seed": 3,
         "environment": {"NVIDIA_TF32_OVERRIDE": null})"))
              .cases[0])
          .dump();
  Mutator mutator(7);
  int accepted = 0;
  for (int i = 0; i < kMutations; ++i) {
    const nlohmann::json json = nlohmann::json::parse(mutator.mutate(line), nullptr, false);
    try {
      const Case c = case_from_json(json, &testing::lookup);
      ++accepted;
      ASSERT_EQ(case_from_json(case_to_json(c), &testing::lookup).id, c.id);
    } catch (const PlanError& error) {
      ASSERT_FALSE(error.diagnostics().empty());
    }
  }
  EXPECT_GT(accepted, 20);
}

}  // namespace
}  // namespace numcheck::plan
