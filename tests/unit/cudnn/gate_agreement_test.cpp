// cuDNN's own answers to random cases of attention, on architectures that this machine lacks, against the rows of
// configs/attention_gates.json. Every disagreement is printed; a row that claims a refusal must be right.
#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attention_problem.hpp"
#include "deviceless.hpp"
#include "eligibility/attention_gates.hpp"
#include "kernels/cudnn/attention_graph.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"

namespace numcheck::kernels::cudnn {
namespace {

using eligibility::Answer;
using eligibility::Refusal;

/// Whether an engine accepts a case; if none does, the reason of the first form.
struct Reply {
  bool accepted = false;
  std::string words;
};

template <class T>
const T& one_of(std::mt19937_64& generator, const std::vector<T>& list) {
  return list[generator() % list.size()];
}

/// A case near the gates: most of its parameters are plain, so that one gate rarely hides another.
op::AttentionParams drawn(std::mt19937_64& generator) {
  const auto rarely = [&generator] { return generator() % 4 == 0; };
  const std::vector<std::int64_t> lengths = {1, 63, 64, 127, 128, 129, 200, 256, 1024, 2048};
  const std::vector<std::int64_t> channels = {8, 20, 36, 64, 96, 128, 136, 160, 192, 256, 264, 512};
  op::AttentionParams p;
  p.batches = 2;
  p.heads = 8;
  p.kv_heads = rarely() ? one_of<std::int64_t>(generator, {1, 2}) : 0;
  p.sq = one_of(generator, lengths);
  p.sk = rarely() ? one_of(generator, lengths) : p.sq;
  p.d = rarely() ? one_of(generator, channels) : 64;
  p.dv = rarely() ? one_of(generator, channels) : 0;
  p.mask = one_of<std::string>(
      generator, {"none", "causal", "causal_bottom_right", "padding", "padding_causal", "padding_causal_bottom_right"});
  if (rarely()) {
    p.window_left = one_of<std::int64_t>(generator, {0, 1, 16, 128});
    p.window_right = one_of<std::int64_t>(generator, {-1, 0, 16});
  }
  p.bias = rarely() ? one_of<std::string>(generator, {"pre_scale", "post_scale", "alibi"}) : "none";
  p.softmax = rarely() ? one_of<std::string>(generator, {"off_by_one", "learnable"}) : "vanilla";
  p.softcap = generator() % 8 == 0 ? 30 : 0;
  p.layout = one_of<std::string>(generator, {"bshd", "sbhd", "bhsd"});
  if (p.has_lengths() && generator() % 2 == 0) {
    p.layout = "thd";
    p.align = one_of<std::int64_t>(generator, {1, 16});
  }
  if (rarely() && p.layout != "bhsd" && p.dv == 0) {
    p.packing = one_of<std::string>(generator, {"kv_2hd", "kv_h2d"});
    if (p.kv_heads == 0 && p.sq == p.sk) {
      p.packing = one_of<std::string>(generator, {"qkv_3hd", "qkv_h3d"});
    }
  }
  p.dropout = rarely() ? 0.1 : 0;
  p.max_logit = generator() % 8 == 0;
  return p;
}

class CudnnGateAgreement : public test::Deviceless {
 protected:
  [[nodiscard]] Reply ask(const test::Problem& problem) const {
    Reply reply;
    for (const AttentionForm form : attention_forms(problem.call(), library().get_version())) {
      try {
        const std::shared_ptr<Graph> graph = attention_graph(library(), problem.call(), form);
        graph->finalize(nullptr);
        const Candidates offered = candidates(*graph, target(), HeuristicsMode::a);
        reply.accepted = reply.accepted || !offered.list.empty();
        reply.words = reply.words.empty() ? offered.refusal : reply.words;
      } catch (const CudnnError& error) {
        if (!error.is_refusal()) {
          throw;
        }
        reply.words = reply.words.empty() ? error.reason() : reply.words;
      }
    }
    return reply;
  }

  [[nodiscard]] static std::vector<Refusal> rows_for(const op::AttentionParams& p, bool backward) {
    return eligibility::refusals(eligibility::Selector::cudnn, p,
                                 {.storage = core::Dtype::bf16,
                                  .training = backward,
                                  .backward = backward,
                                  .deterministic = backward,
                                  .sm = GetParam(),
                                  .cudnn = static_cast<std::int64_t>(library().get_version())});
  }

  [[nodiscard]] static bool is_known_version() { return library().get_version() / 100 == test::kKnownVersion; }
};

TEST_P(CudnnGateAgreement, rows_that_claim_a_refusal_are_right) {
  constexpr int kCases = 120;
  std::mt19937_64 generator(static_cast<std::uint64_t>(GetParam()));
  const std::string who = "cuDNN " + library().version() + " on sm_" + std::to_string(GetParam());
  int agreed = 0;
  for (int i = 0; i < kCases; ++i) {
    const bool backward = i % 2 == 1;
    op::AttentionParams p = drawn(generator);
    p.max_logit = p.max_logit && !backward;
    const test::Problem problem = test::problem(backward ? op::attention_bwd() : op::attention_fwd(), p, "bf16");
    const std::vector<Refusal> rows = rows_for(p, backward);
    const Reply reply = ask(problem);
    const auto claim = std::ranges::find(rows, Answer::refused, [](const Refusal& row) { return row.gate->answer; });
    if (claim != rows.end() && reply.accepted) {
      std::cout << who << " accepts what \"" << claim->gate->name << "\" claims to be refused: " << problem.c.id
                << '\n';
      EXPECT_FALSE(is_known_version()) << problem.c.id << ": " << claim->sentence;
    } else if (!rows.empty() && reply.accepted) {
      std::cout << who << " accepts what documents exclude (" << rows.front().gate->name << "): " << problem.c.id
                << '\n';
    } else if (rows.empty() && !reply.accepted) {
      std::cout << who << " refuses what no row excludes: " << problem.c.id << ": " << reply.words << '\n';
    } else {
      ++agreed;
    }
  }
  std::cout << who << " and the table agree on " << agreed << " of " << kCases << " cases\n";
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudnnGateAgreement, ::testing::Values(80, 89, 90, 100, 120),
                         [](const auto& parameter) { return "sm_" + std::to_string(parameter.param); });

}  // namespace
}  // namespace numcheck::kernels::cudnn
