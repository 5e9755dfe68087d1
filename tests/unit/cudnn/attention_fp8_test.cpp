// FP8 attention's graphs for devices that this machine lacks. Expectations are those of 9.19; other versions only have to
// answer.
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "attention_problem.hpp"
#include "deviceless.hpp"
#include "kernels/cudnn/attention_graph.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"

namespace numcheck::kernels::cudnn {
namespace {

using test::kKnownVersion;
using test::problem;
using test::Problem;

/// What is changed in b2 h4 sq256 sk256 d128.
using Change = std::function<void(op::AttentionParams&)>;

op::AttentionParams changed(const Change& change) {
  op::AttentionParams p;
  p.batches = 2;
  p.heads = 4;
  p.sq = p.sk = 256;
  p.d = 128;
  change(p);
  return p;
}

const std::vector<Change>& features() {
  static const std::vector<Change> list = {
      [](auto&) {},
      [](auto& p) { p.kv_heads = 2; },
      [](auto& p) { p.mask = "causal"; },
      [](auto& p) { p.mask = "padding"; },
      [](auto& p) { p.mask = "padding_causal", p.layout = "sbhd"; },
      [](auto& p) { p.layout = "bhsd", p.sq = 128; },
  };
  return list;
}

class CudnnFp8Attention : public test::Deviceless {
 protected:
  [[nodiscard]] Candidates ask(const op::Op& op, const op::AttentionParams& params, std::string_view mode) const {
    const Problem p = problem(op, params, mode);
    const std::shared_ptr<Graph> graph = attention_graph(library(), p.call(), AttentionForm::composite);
    graph->finalize(nullptr);
    return candidates(*graph, target(), HeuristicsMode::a);
  }

  void expect_engines(const op::Op& op, const Change& change, std::string_view mode) const {
    const Candidates offered = ask(op, changed(change), mode);
    if (is_known_version()) {
      EXPECT_FALSE(offered.list.empty()) << problem(op, changed(change), mode).c.id << ": " << offered.refusal;
    }
  }
  void expect_refusal(const op::Op& op, const Change& change, std::string_view mode) const {
    const Candidates offered = ask(op, changed(change), mode);
    if (is_known_version()) {
      EXPECT_TRUE(offered.list.empty()) << problem(op, changed(change), mode).c.id;
      EXPECT_FALSE(offered.refusal.empty());
    }
  }

  [[nodiscard]] static bool is_known_version() { return library().get_version() / 100 == kKnownVersion; }
};

TEST_P(CudnnFp8Attention, features_have_an_engine_from_hopper_on) {
  for (const char* mode : {"fp8_e4m3", "fp8_hybrid"}) {
    for (const op::Op* op : {&op::attention_fwd(), &op::attention_bwd()}) {
      for (const Change& change : features()) {
        const bool has = GetParam() >= 90 && (GetParam() < 120 || op == &op::attention_fwd());
        has ? expect_engines(*op, change, mode) : expect_refusal(*op, change, mode);
      }
    }
  }
}

TEST_P(CudnnFp8Attention, head_dimensions_are_limited) {
  if (GetParam() != 90) {
    GTEST_SKIP() << "the limits are those of sm_90";
  }
  for (const std::int64_t d : {16, 64, 192, 256}) {
    const Change change = [d](auto& p) { p.d = d; };
    expect_engines(op::attention_fwd(), change, "fp8_hybrid");
    expect_refusal(op::attention_bwd(), change, "fp8_hybrid");
  }
  expect_refusal(op::attention_fwd(), [](auto& p) { p.d = 72; }, "fp8_hybrid");
  expect_refusal(op::attention_fwd(), [](auto& p) { p.d = 272; }, "fp8_hybrid");
  expect_refusal(op::attention_fwd(), [](auto& p) { p.sq = 1; }, "fp8_hybrid");
}

// NVIDIA's frontend refuses them below sm_100; the engines do not, and so they are run and judged.
TEST_P(CudnnFp8Attention, masks_from_the_bottom_right_have_an_engine_on_hopper) {
  if (GetParam() == 90) {
    expect_engines(op::attention_fwd(), [](auto& p) { p.mask = "causal_bottom_right", p.sk = 512; }, "fp8_hybrid");
  }
}

TEST_P(CudnnFp8Attention, plans_come_as_far_as_the_kernel) {
  if (GetParam() != 90) {
    GTEST_SKIP() << "the kernels are those of sm_90";
  }
  for (const op::Op* op : {&op::attention_fwd(), &op::attention_bwd()}) {
    const Problem p =
        problem(*op, changed([](auto& params) { params.mask = "causal", params.kv_heads = 2; }), "fp8_hybrid");
    const std::shared_ptr<Graph> graph = attention_graph(library(), p.call(), AttentionForm::composite);
    graph->finalize(nullptr);
    const Candidates offered = candidates(*graph, target(), HeuristicsMode::a);
    ASSERT_FALSE(offered.list.empty()) << p.c.id << ": " << offered.refusal;
    try {
      static_cast<void>(make_plan(*graph, target(), offered.list.front()));
    } catch (const CudnnError& error) {
      EXPECT_EQ(error.status(), kDriverFailed) << p.c.id << ": " << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudnnFp8Attention, ::testing::Values(80, 89, 90, 100, 120),
                         [](const auto& parameter) { return "sm_" + std::to_string(parameter.param); });

}  // namespace
}  // namespace numcheck::kernels::cudnn
