#include "op/moe.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fp32_op.hpp"
#include "kernels/sim/moved_nans.hpp"

namespace numcheck::kernels::sim {
namespace {

std::string needs_tokens(const Call& call) {
  return op::port_named(call.ports, "row_id_map").rows < 2 ? "there is only one copy" : "";
}

std::string needs_dropped(const Call& call) {
  return op::from_params<op::MoePermuteParams>(call.c->params).dropped == 0 ? "no copy is dropped" : "";
}

std::string needs_probs(const Call& call) {
  return op::from_params<op::MoeUnpermuteParams>(call.c->params).probs ? "" : "there are no probabilities";
}

std::string needs_two_experts(const Call& call) {
  return op::from_params<op::MoeUnpermuteParams>(call.c->params).topk < 2 ? "every token has only one expert" : "";
}

constexpr std::array kPermuteFaults = {
    OpFault{{"map_shifted", "every copy goes one place too far"}, &needs_tokens},
    OpFault{{"token_major_map", "the map is read token by token, not expert by expert"},
            [](const Call& call) {
              const auto p = op::from_params<op::MoePermuteParams>(call.c->params);
              return std::string(p.topk < 2 || p.tokens < 2 ? "both orders are the same" : "");
            }},
    OpFault{{"dropped_overwrite", "dropped copies are written to the first row"}, &needs_dropped},
    OpFault{{"last_column_missing", "the last column is not copied"}},
    OpFault{{"first_expert_only", "only the first copy of every token is moved"},
            [](const Call& call) {
              const auto p = op::from_params<op::MoePermuteParams>(call.c->params);
              return std::string(p.topk < 2 ? "every token has only one expert" : "");
            }},
};
constexpr std::array kUnpermuteFaults = {
    OpFault{{"probs_ignored", "rows are added without their weights"}, &needs_probs},
    OpFault{{"last_expert_missing", "the last expert of every token is left out"}, &needs_two_experts},
    OpFault{{"mean_of_experts", "the sum is divided by topk"}, &needs_two_experts},
    OpFault{{"fp8_partial_sums", "partial sums are rounded to E5M2"}, &needs_two_experts},
    OpFault{{"map_shifted", "every row is read one place too far"}, &needs_tokens},
};

void run_permute(const op::MoePermuteParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> x = read_floats(ports, "x");
  const std::vector<float> map = read_floats(ports, "row_id_map");
  const auto hidden = static_cast<std::size_t>(p.hidden);
  const std::size_t moved = hidden - (fault == "last_column_missing" ? 1 : 0);
  const auto rows = static_cast<std::size_t>(p.topk * p.tokens - p.dropped);
  std::vector<float> y(rows * hidden);
  const std::size_t copies = fault == "first_expert_only" ? map.size() / static_cast<std::size_t>(p.topk) : map.size();
  for (std::size_t copy = 0; copy < copies; ++copy) {
    const std::size_t token = fault == "token_major_map" ? copy / static_cast<std::size_t>(p.topk)
                                                         : copy % static_cast<std::size_t>(p.tokens);
    if (map[copy] >= 0) {
      const auto place = (static_cast<std::size_t>(map[copy]) + (fault == "map_shifted" ? 1 : 0)) % rows;
      std::copy_n(x.data() + token * hidden, moved, y.data() + place * hidden);
    }
  }
  if (fault == "dropped_overwrite" && rows > 0) {
    const auto dropped = std::ranges::find(map, -1.0F) - map.begin();
    std::copy_n(x.data() + static_cast<std::size_t>(dropped) % static_cast<std::size_t>(p.tokens) * hidden, hidden,
                y.data());
  }
  write_floats(ports, "y", y, fault);
  std::vector<std::size_t> tokens(rows);
  for (std::size_t copy = 0; copy < map.size(); ++copy) {
    if (map[copy] >= 0) {
      tokens[static_cast<std::size_t>(map[copy])] = copy % static_cast<std::size_t>(p.tokens);
    }
  }
  move_nans(ports, "x", "y", [&](std::size_t i) { return tokens[i / hidden] * hidden + i % hidden; });
}

/// Rounds every step to the tensor's format, as TransformerEngine's kernel does.
struct Unpermute {
  const op::MoeUnpermuteParams& p;
  core::Dtype format;
  const std::string& fault;
  std::vector<float> x, map, probs;

  [[nodiscard]] float rounded(float value) const {
    return static_cast<float>(core::round_to(static_cast<double>(value), format));
  }

  [[nodiscard]] float element(std::size_t token, std::size_t column) const {
    const auto topk = static_cast<std::size_t>(p.topk);
    const auto rows = static_cast<std::size_t>(p.topk * p.tokens - p.dropped);
    const std::size_t used = topk - (fault == "last_expert_missing" ? 1 : 0);
    float sum = 0;
    for (std::size_t k = 0; k < used; ++k) {
      const float place = map[k * static_cast<std::size_t>(p.tokens) + token];
      if (place < 0) {
        continue;
      }
      const auto row = (static_cast<std::size_t>(place) + (fault == "map_shifted" ? 1 : 0)) % rows;
      float term = x[row * static_cast<std::size_t>(p.hidden) + column];
      if (p.probs && fault != "probs_ignored") {
        term = rounded(term * rounded(probs[token * topk + k]));
      }
      sum = rounded(sum + term);
      if (fault == "fp8_partial_sums") {
        sum = static_cast<float>(core::round_to(static_cast<double>(sum), core::Dtype::fp8_e5m2));
      }
    }
    return fault == "mean_of_experts" ? sum / static_cast<float>(p.topk) : sum;
  }
};

void run_unpermute(const op::MoeUnpermuteParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const Unpermute task{p,
                       find_port(ports, "x")->port->dtype,
                       fault,
                       read_floats(ports, "x"),
                       read_floats(ports, "row_id_map"),
                       p.probs ? read_floats(ports, "probs") : std::vector<float>()};
  const auto hidden = static_cast<std::size_t>(p.hidden);
  std::vector<float> y(static_cast<std::size_t>(p.tokens) * hidden);
  core::parallel_for(static_cast<std::size_t>(p.tokens), [&](std::size_t token) {
    for (std::size_t column = 0; column < hidden; ++column) {
      y[token * hidden + column] = task.element(token, column);
    }
  });
  write_floats(ports, "y", y, fault);
}

}  // namespace

const Binding& moe_permute() {
  return fp32_op<op::MoePermuteParams, kPermuteFaults, &run_permute>("moe_permute");
}

const Binding& moe_unpermute() {
  return fp32_op<op::MoeUnpermuteParams, kUnpermuteFaults, &run_unpermute>("moe_unpermute");
}

}  // namespace numcheck::kernels::sim
