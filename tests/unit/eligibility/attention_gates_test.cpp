// configs/attention_gates.json: what its rows say about cases whose answer is known.
#include "eligibility/attention_gates.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace numcheck::eligibility {
namespace {

op::AttentionParams plain() {
  op::AttentionParams p;
  p.heads = 4;
  p.sq = p.sk = 128;
  p.d = 64;
  return p;
}

Circumstances training(int sm, std::int64_t cudnn = 91900) {
  return {.storage = core::Dtype::bf16, .training = true, .sm = sm, .cudnn = cudnn};
}

template <class T>
const T& one_of(std::mt19937_64& generator, const std::vector<T>& list) {
  return list[generator() % list.size()];
}

/// Any case and any circumstances, near the borders of gates.
std::pair<op::AttentionParams, Circumstances> drawn(std::mt19937_64& generator) {
  const auto choice = [&](WordFact fact) {
    // Half of the cases have the first word, which is the plain one.
    const auto legal = legal_words(fact);
    return std::string(generator() % 2 == 0 ? legal.front() : one_of(generator, legal));
  };
  const auto flag = [&generator] { return generator() % 2 == 0; };
  const std::vector<std::int64_t> lengths = {1, 64, 100, 128, 512, 1024, 1025, 2048, 32768};
  const std::vector<std::int64_t> channels = {36, 64, 128, 136, 192, 200, 256, 264};
  op::AttentionParams p = plain();
  p.kv_heads = flag() ? 2 : 0;
  p.sq = one_of(generator, lengths);
  p.sk = flag() ? p.sq : one_of(generator, lengths);
  p.d = one_of(generator, channels);
  p.dv = flag() ? 0 : one_of(generator, channels);
  p.mask = choice(WordFact::mask);
  p.bias = choice(WordFact::bias);
  p.softmax = choice(WordFact::softmax);
  p.layout = choice(WordFact::layout);
  p.packing = choice(WordFact::packing);
  p.align = flag() ? 1 : 16;
  p.window_left = flag() ? -1 : 16;
  p.window_right = flag() ? -1 : 0;
  p.softcap = generator() % 8 == 0 ? 30 : 0;
  p.dropout = generator() % 4 == 0 ? 0.1 : 0;
  p.max_logit = generator() % 8 == 0;
  Circumstances at;
  using core::Dtype;
  at.storage = one_of(generator, std::vector<Dtype>{Dtype::bf16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp32});
  at.backward = flag();
  at.training = at.backward || flag();
  at.deterministic = at.training && flag();
  at.sm = one_of(generator, std::vector<int>{75, 80, 89, 90, 100, 103, 109, 110, 120});
  at.cudnn = one_of(generator, std::vector<std::int64_t>{8902,  8903,  8905,  8906,  8907,  90000, 90100, 90200, 90201,
                                                         90300, 90400, 90500, 90600, 90700, 90900, 91000, 91001, 91002,
                                                         91100, 91300, 91301, 91400, 91401, 91500, 91800, 91801, 91900,
                                                         92100, 92300, 92301, 92400, 92500, 92600});
  return {p, at};
}

constexpr int kDrawn = 50'000;

const char* name_of(Answer answer) {
  return answer == Answer::refused ? "refused" : answer == Answer::documented_only ? "documented_only" : "not_asked";
}

/// Every row with its answer and of how many drawn cases it holds; then what TransformerEngine's layer prefers how often.
std::string snapshot() {
  std::mt19937_64 generator(7);
  std::map<const Gate*, int> failed;
  std::map<std::string, int> orders;
  for (int i = 0; i < kDrawn; ++i) {
    const auto [p, at] = drawn(generator);
    const Facts facts(p, at);
    for (const Gate& gate : attention_gates().gates) {
      failed[&gate] += evaluate(gate.refuses, facts) == Truth::yes ? 1 : 0;
    }
    std::string order;
    for (const TeChoice choice : te_order(p, at)) {
      order += fmt::format(" {}", static_cast<int>(choice));
    }
    ++orders[order];
  }
  std::string text;
  for (const Gate& gate : attention_gates().gates) {
    text +=
        fmt::format("{} {} {} {}\n", static_cast<int>(gate.selector), gate.name, name_of(gate.answer), failed[&gate]);
  }
  for (const auto& [order, count] : orders) {
    text += fmt::format("order{}: {}\n", order, count);
  }
  return text;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A row that is removed, added or says something else about any of these cases shows here. What it should say is in its
/// source; tests/unit/cudnn and tests/gpu ask the libraries.
TEST(AttentionGates, rows_say_what_they_said) {
  const std::string path = TE_NUMCHECK_SOURCE_DIR "/tests/data/eligibility/attention_gates.txt", now = snapshot();
  if (const char* update = std::getenv("TE_NUMCHECK_UPDATE_GOLDEN"); update != nullptr && std::string(update) == "1") {
    std::ofstream(path, std::ios::binary) << now;
  }
  EXPECT_EQ(now, read(path))
      << "if that is what its source says, TE_NUMCHECK_UPDATE_GOLDEN=1 eligibility_test writes the "
         "file again; look at the difference";
}

TEST(AttentionGates, every_row_can_fail_and_can_hold) {
  std::mt19937_64 generator(7);
  std::set<const Gate*> failed;
  std::set<const Gate*> held;
  for (int i = 0; i < kDrawn; ++i) {
    const auto [p, at] = drawn(generator);
    const Facts facts(p, at);
    for (const Gate& gate : attention_gates().gates) {
      const Truth fails = evaluate(gate.refuses, facts);
      ASSERT_NE(fails, Truth::unknown) << gate.name;
      (fails == Truth::yes ? failed : held).insert(&gate);
    }
  }
  for (const Gate& gate : attention_gates().gates) {
    EXPECT_TRUE(failed.contains(&gate)) << gate.name << ": " << gate.sentence;
    EXPECT_TRUE(held.contains(&gate)) << gate.name << ": " << gate.sentence;
  }
}

TEST(AttentionGates, plain_cases_are_taken_by_all) {
  for (const int sm : {80, 89, 90, 100, 120}) {
    for (const Selector selector : {Selector::cudnn, Selector::fused_interface, Selector::fused_layer,
                                    Selector::fused_kernels, Selector::flash, Selector::unfused}) {
      EXPECT_EQ(first_refusal(selector, plain(), training(sm)), "") << sm;
    }
  }
}

TEST(AttentionGates, fp32_is_refused_by_fused_and_flash_attention) {
  Circumstances at = training(80);
  at.storage = core::Dtype::fp32;
  EXPECT_NE(first_refusal(Selector::fused_interface, plain(), at).find("q, k and v are FP32"), std::string::npos);
  EXPECT_NE(first_refusal(Selector::flash, plain(), at).find("q, k and v are FP32"), std::string::npos);
  EXPECT_NE(first_refusal(Selector::cudnn, plain(), at).find("tensor cores"), std::string::npos);
}

TEST(AttentionGates, fp8_is_taken_from_hopper_on) {
  op::AttentionParams p = plain();
  p.d = 128;
  const auto refusal = [&p](Selector selector, int sm, bool backward) {
    Circumstances at = training(sm);
    at.storage = core::Dtype::fp8_e4m3;
    at.backward = backward;
    return first_refusal(selector, p, at);
  };
  for (const Selector selector : {Selector::cudnn, Selector::fused_interface, Selector::fused_kernels}) {
    EXPECT_EQ(refusal(selector, 90, true), "");
    EXPECT_EQ(refusal(selector, 100, false), "");
  }
  EXPECT_NE(refusal(Selector::cudnn, 89, false).find("sm_90"), std::string::npos);
  EXPECT_NE(refusal(Selector::fused_kernels, 89, false).find("sm_90"), std::string::npos);
  EXPECT_NE(refusal(Selector::flash, 90, true).find("inference"), std::string::npos);
  p.d = 64;
  EXPECT_EQ(refusal(Selector::cudnn, 90, false), "");
  EXPECT_NE(refusal(Selector::cudnn, 90, true).find("128 only"), std::string::npos);
}

TEST(AttentionGates, fp8_of_ragged_sequences_is_refused_for_being_ragged) {
  op::AttentionParams p = plain();
  p.layout = "thd";
  p.mask = "padding";
  p.d = 128;
  for (const Selector selector : {Selector::cudnn, Selector::fused_kernels}) {
    for (const std::int64_t cudnn : {91400, 92100, 92200}) {
      Circumstances at = training(90, cudnn);
      at.storage = core::Dtype::fp8_e4m3;
      EXPECT_NE(first_refusal(selector, p, at).find("layout thd needs"), std::string::npos) << cudnn;
    }
  }
}

TEST(AttentionGates, a_softcap_is_for_flash_attention_without_dropout_and_for_the_unfused_layer) {
  op::AttentionParams p = plain();
  p.softcap = 30;
  EXPECT_NE(first_refusal(Selector::fused_interface, p, training(90)).find("no softcap"), std::string::npos);
  EXPECT_EQ(first_refusal(Selector::flash, p, training(90)), "");
  EXPECT_EQ(first_refusal(Selector::unfused, p, training(90)), "");
  p.dropout = 0.1;
  EXPECT_NE(first_refusal(Selector::flash, p, training(90)).find("no softcap with dropout"), std::string::npos);
  EXPECT_EQ(first_refusal(Selector::unfused, p, training(90)), "");
}

TEST(AttentionGates, deterministic_gradients_of_long_ragged_sequences_are_not_fused_on_sm_90) {
  op::AttentionParams p = plain();
  p.layout = "thd";
  p.mask = "padding";
  p.batches = 2;
  p.heads = 16;
  p.sq = p.sk = 8192;
  Circumstances at = training(90);
  at.deterministic = true;
  EXPECT_NE(first_refusal(Selector::fused_layer, p, at).find("2^30"), std::string::npos);
  p.sq = 4096;
  p.sk = 8191;
  EXPECT_EQ(first_refusal(Selector::fused_layer, p, at).find("2^30"), std::string::npos);
}

TEST(AttentionGates, padding_between_ragged_sequences_needs_fused_attention_or_flash_attention_3) {
  op::AttentionParams p = plain();
  p.layout = "thd";
  p.mask = "padding";
  EXPECT_EQ(first_refusal(Selector::flash, p, training(100)), "");
  EXPECT_EQ(first_refusal(Selector::unfused, p, training(90)), "");
  p.align = 16;
  EXPECT_EQ(first_refusal(Selector::flash, p, training(90)), "");
  EXPECT_NE(first_refusal(Selector::flash, p, training(100)), "");
  EXPECT_NE(first_refusal(Selector::unfused, p, training(90)), "");
  p.dropout = 0.1;
  EXPECT_NE(first_refusal(Selector::flash, p, training(90)), "");
}

TEST(AttentionGates, the_pytorch_layer_limits_windows_sinks_and_determinism_in_fp8) {
  op::AttentionParams p = plain();
  p.d = 128;
  Circumstances at = training(90);
  at.storage = core::Dtype::fp8_e4m3;
  EXPECT_EQ(first_refusal(Selector::fused_layer, p, at), "");
  p.mask = "causal";
  p.window_right = 0;  // what a causal mask has anyway
  EXPECT_EQ(first_refusal(Selector::fused_layer, p, at), "");
  p.window_left = 16;
  EXPECT_NE(first_refusal(Selector::fused_layer, p, at), "");
  at.sm = 100;
  at.cudnn = 92100;
  EXPECT_EQ(first_refusal(Selector::fused_layer, p, at), "");
  p.window_left = p.window_right = -1;
  at.sm = 90;
  at.deterministic = true;
  at.cudnn = 91400;
  EXPECT_NE(first_refusal(Selector::fused_layer, p, at), "");
  at.cudnn = 91900;
  EXPECT_EQ(first_refusal(Selector::fused_layer, p, at), "");
  EXPECT_EQ(first_refusal(Selector::unfused, p, at), "");
  p.softmax = "off_by_one";
  EXPECT_NE(first_refusal(Selector::unfused, p, at), "");
}

TEST(AttentionGates, ragged_sequences_with_a_sink_need_a_newer_library) {
  op::AttentionParams p = plain();
  p.layout = "thd";
  p.mask = "padding";
  p.softmax = "learnable";
  EXPECT_NE(first_refusal(Selector::fused_layer, p, training(90, 91400)), "");
  EXPECT_EQ(first_refusal(Selector::fused_layer, p, training(90, 91800)), "");
}

TEST(AttentionGates, hopper_prefers_fused_attention) {
  EXPECT_EQ(te_order(plain(), training(80)).front(), TeChoice::flash);
  EXPECT_EQ(te_order(plain(), training(90)).front(), TeChoice::fused);
}

TEST(AttentionGates, wide_heads_depend_on_architecture_direction_and_version) {
  op::AttentionParams p = plain();
  p.d = 256;
  const auto kernels = [&p](const Circumstances& at) { return first_refusal(Selector::fused_kernels, p, at); };
  EXPECT_EQ(kernels(training(90)), "");
  EXPECT_NE(kernels(training(90, 90400)), "");
  EXPECT_NE(kernels(training(80)), "");
  EXPECT_NE(kernels(training(100)), "");
  EXPECT_EQ(kernels(training(100, 92300)), "");
  EXPECT_NE(kernels(training(110, 92300)), "");
  op::AttentionParams ragged = p;
  ragged.layout = "thd";
  ragged.mask = "padding";
  EXPECT_NE(first_refusal(Selector::fused_kernels, ragged, training(100, 92300)).find("in layout thd 9.25"),
            std::string::npos);
  EXPECT_EQ(first_refusal(Selector::fused_kernels, ragged, training(100, 92500)), "");
  Circumstances inference = training(80);
  inference.training = false;
  EXPECT_EQ(kernels(inference), "");
  inference.cudnn = 90900;
  EXPECT_NE(kernels(inference), "");
}

TEST(AttentionGates, flash_attention_on_hopper_takes_what_one_of_its_versions_takes) {
  const auto refusal = [](std::int64_t d, std::int64_t dv, double dropout = 0,
                          core::Dtype storage = core::Dtype::bf16) {
    op::AttentionParams p = plain();
    p.d = d;
    p.dv = dv;
    p.dropout = dropout;
    Circumstances at = training(90);
    at.storage = storage;
    at.training = storage != core::Dtype::fp8_e4m3;
    return first_refusal(Selector::flash, p, at);
  };
  EXPECT_EQ(refusal(256, 0), "");
  EXPECT_EQ(refusal(192, 128, 0.1), "");
  EXPECT_EQ(refusal(36, 0), "") << "flash-attn 3 takes any number";
  EXPECT_NE(refusal(36, 0, 0.1), "") << "but no dropout";
  EXPECT_EQ(refusal(64, 512), "");
  EXPECT_NE(refusal(72, 512), "");
  EXPECT_NE(refusal(264, 0).find("d is 264"), std::string::npos);
  EXPECT_EQ(refusal(128, 0, 0, core::Dtype::fp8_e4m3), "");
  EXPECT_NE(refusal(128, 64, 0, core::Dtype::fp8_e4m3), "");
}

TEST(AttentionGates, without_a_version_only_certain_rows_speak) {
  op::AttentionParams p = plain();
  p.softmax = "learnable";
  Circumstances at = training(90);
  at.cudnn.reset();
  EXPECT_EQ(first_refusal(Selector::fused_kernels, p, at), "");
  const std::vector<Refusal> open = refusals(Selector::fused_kernels, p, at);
  ASSERT_FALSE(open.empty());
  for (const Refusal& refusal : open) {
    EXPECT_FALSE(refusal.certain) << refusal.sentence;
  }
}

}  // namespace
}  // namespace numcheck::eligibility
