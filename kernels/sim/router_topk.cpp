#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fp32_op.hpp"
#include "op/moe.hpp"

namespace numcheck::kernels::sim {
namespace {

std::string needs_choice(const Call& call) {
  const auto p = op::from_params<op::RouterTopkParams>(call.c->params);
  return p.topk == p.experts ? "every expert is chosen" : "";
}

std::string needs_sigmoid(const Call& call) {
  const auto p = op::from_params<op::RouterTopkParams>(call.c->params);
  return p.score == "sigmoid" && p.topk > 1 ? "" : "scores are not divided by their sum";
}

std::string needs_softmax(const Call& call) {
  return op::from_params<op::RouterTopkParams>(call.c->params).score == "sigmoid" ? "there is no softmax" : "";
}

std::string needs_scaling(const Call& call) {
  return op::from_params<op::RouterTopkParams>(call.c->params).scaling == 1 ? "the scaling factor is 1" : "";
}

constexpr std::array kFaults = {
    OpFault{{"worst_experts", "the lowest scores are chosen"}, &needs_choice},
    OpFault{{"one_expert_less", "one expert too few is chosen"}},
    OpFault{{"softmax_elsewhere", "softmax runs after the choice instead of before, or the reverse"},
            [](const Call& call) {
              const std::string reason = needs_softmax(call);
              return reason.empty() ? needs_choice(call) : reason;
            }},
    OpFault{{"not_normalised", "sigmoid scores are not divided by their sum"}, &needs_sigmoid},
    OpFault{{"scaling_ignored", "the scaling factor is left out"}, &needs_scaling},
    OpFault{{"bf16_scores", "scores are rounded to BF16 before the choice and the weights"}},
};

std::vector<float> softmax(const std::vector<float>& x) {
  const float maximum = *std::ranges::max_element(x);
  std::vector<float> out(x.size());
  std::ranges::transform(x, out.begin(), [maximum](float v) { return std::exp(v - maximum); });
  const float sum = block_sum(out.size(), [&out](std::size_t i) { return out[i]; });
  std::ranges::transform(out, out.begin(), [sum](float v) { return v / sum; });
  return out;
}

void route(const op::RouterTopkParams& p, const float* logits, const std::string& fault, float* probs, float* map) {
  std::vector<float> scores(logits, logits + p.experts);
  const bool late = (p.score == "softmax_post") != (fault == "softmax_elsewhere");
  if (p.score == "sigmoid") {
    std::ranges::transform(scores, scores.begin(), [](float x) { return 1.0F / (1.0F + std::exp(-x)); });
  } else if (!late) {
    scores = softmax(scores);
  }
  if (fault == "bf16_scores") {
    std::ranges::transform(scores, scores.begin(), [](float x) {
      return static_cast<float>(core::round_to(static_cast<double>(x), core::Dtype::bf16));
    });
  }
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return fault == "worst_experts" ? scores[a] < scores[b] : scores[a] > scores[b];
  });
  order.resize(static_cast<std::size_t>(p.topk - (fault == "one_expert_less" ? 1 : 0)));
  std::vector<float> picked;
  for (const std::size_t expert : order) {
    picked.push_back(scores[expert]);
  }
  if (p.score != "sigmoid" && late && !picked.empty()) {
    picked = softmax(picked);
  } else if (p.score == "sigmoid" && p.topk > 1 && fault != "not_normalised") {
    const float sum = std::accumulate(picked.begin(), picked.end(), 0.0F) + 1e-20F;
    std::ranges::transform(picked, picked.begin(), [sum](float x) { return x / sum; });
  }
  const float scaling = fault == "scaling_ignored" ? 1.0F : static_cast<float>(p.scaling);
  for (std::size_t i = 0; i < order.size(); ++i) {
    probs[order[i]] = picked[i] * scaling;
    map[order[i]] = 1;
  }
}

void run(const op::RouterTopkParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> logits = read_floats(ports, "logits");
  std::vector<float> probs(logits.size()), map(logits.size());
  core::parallel_for(static_cast<std::size_t>(p.tokens), [&](std::size_t token) {
    const std::size_t first = token * static_cast<std::size_t>(p.experts);
    route(p, logits.data() + first, fault, probs.data() + first, map.data() + first);
  });
  write_floats(ports, "probs", probs, fault);
  write_floats(ports, "routing_map", map, fault);
}

}  // namespace

const Binding& router_topk() {
  return fp32_op<op::RouterTopkParams, kFaults, &run>("router_topk");
}

}  // namespace numcheck::kernels::sim
