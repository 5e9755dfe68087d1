// Attention's graphs for devices that this machine lacks: which of them cuDNN's engines accept, and its own words where
// they do not. Expectations are those of 9.19; other versions only have to answer.
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

/// What is changed in b2 h4 sq128 sk128 d64.
using Change = std::function<void(op::AttentionParams&)>;

op::AttentionParams changed(const Change& change) {
  op::AttentionParams p;
  p.batches = 2;
  p.heads = 4;
  p.sq = p.sk = 128;
  p.d = 64;
  change(p);
  return p;
}

/// Every feature by itself, and those that meet.
std::vector<op::AttentionParams> accepted() {
  std::vector<Change> changes = {
      [](auto&) {},
      [](auto& p) { p.kv_heads = 1; },
      [](auto& p) { p.sq = 1, p.sk = 77; },
      [](auto& p) { p.sq = 129, p.sk = 1; },
      [](auto& p) { p.d = 96, p.dv = 64; },
      [](auto& p) { p.d = 128, p.sq = 65, p.sk = 127; },
      [](auto& p) { p.window_left = 16; },
      [](auto& p) { p.window_left = 0, p.window_right = 0; },
      [](auto& p) { p.window_left = 7, p.window_right = 16, p.sk = 200; },
      [](auto& p) { p.mask = "causal", p.window_left = 16; },
      [](auto& p) { p.mask = "padding_causal_bottom_right", p.window_left = 16, p.sk = 200; },
      [](auto& p) { p.mask = "causal_bottom_right", p.sq = 200, p.sk = 100; },
      [](auto& p) { p.bias = "post_scale"; },
      [](auto& p) { p.bias = "post_scale", p.mask = "padding"; },
      [](auto& p) { p.bias = "alibi", p.mask = "causal"; },
      [](auto& p) { p.bias = "alibi", p.sk = 200; },
      [](auto& p) { p.softmax = "off_by_one", p.mask = "causal"; },
      [](auto& p) { p.softmax = "learnable", p.window_left = 3; },
  };
  for (const char* layout : {"sbhd", "bhsd"}) {
    changes.emplace_back([layout](auto& p) { p.layout = layout, p.kv_heads = 2; });
  }
  for (const char* packing : {"qkv_3hd", "qkv_h3d", "kv_2hd", "kv_h2d"}) {
    changes.emplace_back([packing](auto& p) { p.packing = packing; });
    changes.emplace_back([packing](auto& p) { p.packing = packing, p.layout = "sbhd", p.mask = "padding_causal"; });
  }
  for (const char* mask :
       {"causal", "causal_bottom_right", "padding", "padding_causal", "padding_causal_bottom_right"}) {
    changes.emplace_back([mask](auto& p) { p.mask = mask, p.sk = 200; });
  }
  std::vector<op::AttentionParams> list;
  for (const Change& change : changes) {
    list.push_back(changed(change));
  }
  return list;
}

class CudnnAttentionDeviceless : public test::Deviceless {
 protected:
  [[nodiscard]] Candidates ask(const Problem& p, AttentionForm form) const {
    const std::shared_ptr<Graph> graph = attention_graph(library(), p.call(), form);
    graph->finalize(nullptr);
    return candidates(*graph, target(), HeuristicsMode::a);
  }

  /// An engine accepts the case in every form that can say it.
  void expect_engines(const op::Op& op, const op::AttentionParams& params, std::string_view mode) const {
    const Problem p = problem(op, params, mode);
    for (const AttentionForm form : attention_forms(p.call(), library().get_version())) {
      const Candidates offered = ask(p, form);
      if (is_known_version()) {
        EXPECT_FALSE(offered.list.empty()) << p.c.id << ' ' << form_name(form) << ": " << offered.refusal;
      }
    }
  }

  /// No engine accepts the composite form, and the reason contains the phrase.
  void expect_refusal(const op::Op& op, const Change& change, std::string_view phrase) const {
    const Problem p = problem(op, changed(change), "bf16");
    const Candidates offered = ask(p, AttentionForm::composite);
    if (is_known_version()) {
      EXPECT_TRUE(offered.list.empty()) << p.c.id;
      EXPECT_NE(offered.refusal.find(phrase), std::string::npos) << p.c.id << ": " << offered.refusal;
    }
  }

  /// The first engine's plan finalises, or fails where a driver would load the compiled kernel.
  void expect_plan(const op::Op& op, const Change& change, AttentionForm form) const {
    const Problem p = problem(op, changed(change), "bf16");
    const std::shared_ptr<Graph> graph = attention_graph(library(), p.call(), form);
    graph->finalize(nullptr);
    const Candidates offered = candidates(*graph, target(), HeuristicsMode::a);
    ASSERT_FALSE(offered.list.empty()) << p.c.id << ": " << offered.refusal;
    try {
      static_cast<void>(make_plan(*graph, target(), offered.list.front()));
    } catch (const CudnnError& error) {
      EXPECT_EQ(error.status(), kDriverFailed) << p.c.id << ": " << error.what();
    }
  }

  [[nodiscard]] static bool is_known_version() { return library().get_version() / 100 == kKnownVersion; }
  [[nodiscard]] static bool is_ampere() { return GetParam() == 80; }
};

TEST_P(CudnnAttentionDeviceless, every_feature_has_an_engine_forward) {
  for (const char* mode : {"bf16", "fp16"}) {
    for (const op::AttentionParams& p : accepted()) {
      expect_engines(op::attention_fwd(), p, mode);
    }
  }
}

TEST_P(CudnnAttentionDeviceless, every_feature_has_an_engine_backward) {
  for (const char* mode : {"bf16", "fp16"}) {
    for (const op::AttentionParams& p : accepted()) {
      expect_engines(op::attention_bwd(), p, mode);
    }
  }
}

TEST_P(CudnnAttentionDeviceless, ragged_sequences_have_engines_from_sm_90) {
  for (const char* mask : {"padding", "padding_causal", "padding_causal_bottom_right"}) {
    for (const char* packing : {"none", "qkv_3hd", "kv_h2d"}) {
      const Change ragged = [&](auto& p) {
        p.layout = "thd", p.mask = mask, p.packing = packing, p.batches = 9, p.align = 16;
      };
      for (const op::Op* op : {&op::attention_fwd(), &op::attention_bwd()}) {
        if (!is_ampere()) {
          expect_engines(*op, changed(ragged), "bf16");
        }
      }
    }
  }
}

/// A mask that is given, alone and with what it may meet.
TEST_P(CudnnAttentionDeviceless, dropout_masks_may_be_inputs) {
  const std::vector<Change> changes = {
      [](auto& p) { p.dropout = 0.1; },
      [](auto& p) { p.dropout = 0.5, p.kv_heads = 2, p.sk = 200; },
      [](auto& p) { p.dropout = 0.1, p.mask = "causal"; },
      [](auto& p) { p.dropout = 0.1, p.mask = "causal_bottom_right", p.sk = 200; },
      [](auto& p) { p.dropout = 0.1, p.mask = "padding"; },
      [](auto& p) { p.dropout = 0.1, p.mask = "causal", p.window_left = 16; },
      [](auto& p) { p.dropout = 0.1, p.bias = "post_scale"; },
      [](auto& p) { p.dropout = 0.1, p.bias = "alibi", p.mask = "causal"; },
      [](auto& p) { p.dropout = 0.1, p.softmax = "learnable"; },
      [](auto& p) { p.dropout = 0.1, p.d = 104; },
  };
  for (const op::Op* op : {&op::attention_fwd(), &op::attention_bwd()}) {
    for (const Change& change : changes) {
      expect_engines(*op, changed(change), "bf16");
    }
  }
}

TEST_P(CudnnAttentionDeviceless, largest_scores_may_be_outputs) {
  const std::vector<Change> changes = {
      [](auto& p) { p.max_logit = true; },
      [](auto& p) { p.max_logit = true, p.mask = "padding_causal"; },
      [](auto& p) { p.max_logit = true, p.softmax = "learnable"; },
      [](auto& p) { p.max_logit = true, p.dropout = 0.1; },
  };
  for (const Change& change : changes) {
    expect_engines(op::attention_fwd(), changed(change), "bf16");
  }
}

TEST_P(CudnnAttentionDeviceless, head_dimensions_are_limited_backward) {
  for (const std::int64_t d : {8, 32, 104, 160, 192, 256, 512}) {
    expect_engines(op::attention_fwd(), changed([d](auto& p) { p.d = d; }), "bf16");
  }
  for (const std::int64_t d : {160, 192, 256}) {
    if (is_ampere()) {
      expect_refusal(op::attention_bwd(), [d](auto& p) { p.d = d; }, "not less than equal to 128");
    } else {
      expect_engines(op::attention_bwd(), changed([d](auto& p) { p.d = d; }), "bf16");
    }
  }
  expect_refusal(op::attention_bwd(), [](auto& p) { p.d = 512; }, "not less than equal to");
  for (const op::Op* op : {&op::attention_fwd(), &op::attention_bwd()}) {
    expect_refusal(*op, [](auto& p) { p.d = 36; }, "not a multiple of 8");
  }
}

TEST_P(CudnnAttentionDeviceless, bias_before_scaling_has_no_gradient) {
  const Change change = [](auto& p) { p.bias = "pre_scale"; };
  expect_engines(op::attention_fwd(), changed(change), "bf16");
  expect_refusal(op::attention_bwd(), change, "CUDNN_STATUS_NOT_SUPPORTED");
}

TEST_P(CudnnAttentionDeviceless, caps_have_a_derivative_on_hopper) {
  const Change change = [](auto& p) { p.softcap = 30; };
  expect_engines(op::attention_fwd(), changed(change), "bf16");
  if (is_ampere()) {
    expect_refusal(op::attention_bwd(), change, "Backward activations are not supported");
  } else {
    expect_engines(op::attention_bwd(), changed(change), "bf16");
  }
}

TEST_P(CudnnAttentionDeviceless, fp32_tensors_are_accepted_forward_only) {
  const Problem forward = problem(op::attention_fwd(), changed([](auto&) {}), "fp32");
  const Candidates offered = ask(forward, AttentionForm::composite);
  const Candidates refused = ask(problem(op::attention_bwd(), changed([](auto&) {}), "fp32"), AttentionForm::composite);
  if (is_known_version()) {
    ASSERT_FALSE(offered.list.empty());
    EXPECT_EQ(describe(offered.list.front()).details.at(2).second, "tensor_core");
    EXPECT_NE(refused.refusal.find("CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE"), std::string::npos) << refused.refusal;
  }
}

TEST_P(CudnnAttentionDeviceless, plans_come_as_far_as_the_kernel) {
  const Change all = [](auto& p) {
    p.kv_heads = 2;
    p.mask = "padding_causal_bottom_right";
    p.window_left = 16;
    p.bias = "post_scale";
    p.sk = 200;
  };
  expect_plan(op::attention_fwd(), all, AttentionForm::composite);
  expect_plan(op::attention_bwd(), all, AttentionForm::composite);
  expect_plan(op::attention_bwd(), [](auto&) {}, AttentionForm::accumulated);
  if (is_known_version()) {
    expect_plan(op::attention_fwd(), [](auto&) {}, AttentionForm::unified);
  }
}

TEST_P(CudnnAttentionDeviceless, launches_get_every_port_and_auxiliaries_in_the_workspace) {
  const Problem p = problem(op::attention_bwd(), changed([](auto& params) {
                              params.mask = "causal";
                              params.bias = "alibi";
                            }),
                            "bf16");
  const std::shared_ptr<Graph> graph = attention_graph(library(), p.call(), AttentionForm::composite);
  graph->finalize(nullptr);
  // Slopes of four heads, padded to 256 bytes; D of 2 x 4 x 128 queries; lengths where the version needs them.
  const std::size_t lengths = gets_full_lengths(p.call(), library().get_version()) ? 2 * 256 : 0;
  EXPECT_EQ(graph->auxiliary_bytes(), 256 + 4096 + lengths);
  std::vector<std::byte> memory(graph->auxiliary_bytes() + 16);
  std::vector<PortMemory> ports;
  for (const op::Port& port : p.ports) {
    ports.push_back({&port, memory.data()});
  }
  EXPECT_NE(graph->variant_pack(ports, memory.data()).get(), nullptr);
  ports.pop_back();
  EXPECT_THROW(static_cast<void>(graph->variant_pack(ports, memory.data())), core::InternalError);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudnnAttentionDeviceless, ::testing::Values(80, 90),
                         [](const auto& parameter) { return "sm_" + std::to_string(parameter.param); });

TEST(CudnnAttentionForms, depend_on_what_the_case_asks_for) {
  const auto forms = [](const op::Op& op, const Change& change, std::size_t version) {
    const Problem p = problem(op, changed(change), "bf16");
    return attention_forms(p.call(), version);
  };
  using Forms = std::vector<AttentionForm>;
  const Forms both = {AttentionForm::composite, AttentionForm::unified};
  const Forms composite = {AttentionForm::composite};
  const auto padding = [](auto& p) { p.mask = "padding"; };
  EXPECT_EQ(forms(op::attention_fwd(), [](auto&) {}, 91900), both);
  EXPECT_EQ(forms(op::attention_fwd(), [](auto&) {}, 91300), composite);
  EXPECT_EQ(forms(op::attention_fwd(), [](auto&) {}, 92100), composite);
  EXPECT_EQ(forms(op::attention_fwd(), padding, 91900), both);
  EXPECT_EQ(forms(op::attention_fwd(), padding, 91400), composite);
  EXPECT_EQ(forms(op::attention_fwd(), [](auto& p) { p.mask = "causal"; }, 91900), composite);
  EXPECT_EQ(forms(op::attention_fwd(), [](auto& p) { p.softmax = "off_by_one"; }, 91900), composite);
  EXPECT_EQ(
      forms(op::attention_bwd(), [](auto&) {}, 91900), (Forms{AttentionForm::composite, AttentionForm::accumulated}));
}

TEST(CudnnAttentionForms, sums_without_an_order_are_known) {
  const Problem plain = problem(op::attention_bwd(), changed([](auto&) {}), "bf16");
  const Problem learnable = problem(op::attention_bwd(), changed([](auto& p) { p.softmax = "learnable"; }), "bf16");
  const Problem forward = problem(op::attention_fwd(), changed([](auto& p) { p.softmax = "learnable"; }), "bf16");
  EXPECT_EQ(unordered_sum(plain.call(), AttentionForm::composite), "");
  EXPECT_EQ(unordered_sum(plain.call(), AttentionForm::accumulated), "dq");
  EXPECT_EQ(unordered_sum(learnable.call(), AttentionForm::composite), "dsoftmax_offset");
  EXPECT_EQ(unordered_sum(forward.call(), AttentionForm::composite), "");
}

TEST(CudnnAttentionForms, old_backward_engines_get_lengths) {
  const auto full = [](const op::Op& op, const Change& change, std::size_t version) {
    const Problem p = problem(op, changed(change), "bf16");
    return gets_full_lengths(p.call(), version);
  };
  const auto odd = [](auto& p) { p.sk = 129; };
  EXPECT_TRUE(full(op::attention_bwd(), odd, 91400));
  EXPECT_TRUE(full(op::attention_bwd(), odd, 91500));
  EXPECT_FALSE(full(op::attention_bwd(), odd, 91501));
  EXPECT_FALSE(full(op::attention_bwd(), [](auto&) {}, 91400));
  EXPECT_FALSE(full(op::attention_fwd(), odd, 91400));
  EXPECT_FALSE(full(op::attention_bwd(), [](auto& p) { p.sk = 129, p.mask = "padding"; }, 91400));
}

}  // namespace
}  // namespace numcheck::kernels::cudnn
