#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "op/moe.hpp"
#include "reference/independent_rows.hpp"
#include "reference/mistakes.hpp"
#include "reference/open_elements.hpp"
#include "reference/references.hpp"
#include "reference/router_token.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

/// Sets the weight of an expert. NaN as a yardstick: not checked.
void set_weight(TrackedOutput& probs, std::size_t at, double weight) {
  probs.set(at, weight);
}
void set_weight(TrackedOutput& probs, std::size_t at, const Tracked& weight) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::isfinite(weight.y) ? probs.set(at, weight) : probs.set(at, 0, kNan, kNan);
}

template <class Scalar>
void route(const op::RouterTopkParams& p, const double* logits, std::size_t first, TrackedOutput& probs,
           TrackedOutput& map, OpenElements& open) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const RoutedToken<Scalar> token(p, logits);
  for (std::size_t expert = 0; expert < static_cast<std::size_t>(p.experts); ++expert) {
    const std::size_t at = first + expert;
    if (token.unknown()) {
      map.set(at, 0, kNan, kNan);
      probs.set(at, 0, kNan, kNan);
    } else {
      map.set(at, token.chosen(expert) ? 1 : 0, 0, 0);
      token.chosen(expert) ? set_weight(probs, at, token.weight(expert)) : probs.set(at, 0, 0, 0);
    }
  }
  if (token.tied()) {
    open.note(first, static_cast<std::size_t>(p.experts));
  }
}

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::RouterTopkParams>(*request.params);
  const op::Operand& logits = op::operand_named(request.inputs, "logits");
  TrackedOutput probs("probs", logits.elements(), request.values_only);
  TrackedOutput map("routing_map", logits.elements(), request.values_only);
  OpenElements open;
  core::parallel_for(static_cast<std::size_t>(p.tokens), [&](std::size_t token) {
    const std::size_t first = token * static_cast<std::size_t>(p.experts);
    if (request.values_only) {
      route<double>(p, logits.data + first, first, probs, map, open);
    } else {
      route<Tracked>(p, logits.data + first, first, probs, map, open);
    }
  });
  open.leave(map);
  probs.values().open = map.values().open;
  op::Values result;
  result.outputs.push_back(std::move(probs).take());
  result.outputs.push_back(std::move(map).take());
  return result;
}

/// The experts that the device chose for a token, by the map, or by the weights if there is no map.
std::vector<bool> delivered_choice(const op::FindingRequest& request, std::size_t first, std::size_t experts) {
  auto given = std::ranges::find(request.outputs, std::string_view("routing_map"), &op::Delivered::port);
  if (given == request.outputs.end()) {
    given = std::ranges::find(request.outputs, std::string_view("probs"), &op::Delivered::port);
  }
  std::vector<bool> chosen;
  for (std::size_t expert = 0; expert < experts; ++expert) {
    chosen.push_back(given->value[first + expert] != 0);
  }
  return chosen;
}

/// Tied tokens of which the device made another choice that FP32 arithmetic may make: both outputs are judged by it. Any
/// other choice is wrong, as it stands.
std::vector<op::Settled> settle(const op::FindingRequest& request) {
  const auto p = op::from_params<op::RouterTopkParams>(*request.params);
  const op::Operand& logits = op::operand_named(request.inputs, "logits");
  const auto experts = static_cast<std::size_t>(p.experts);
  const std::vector<op::OutputValues>& expected = request.expected->outputs;
  const auto index_of = [&expected](std::string_view port) {
    return static_cast<std::size_t>(std::ranges::find(expected, port, &op::OutputValues::port) - expected.begin());
  };
  const std::size_t probs = index_of("probs"), map = index_of("routing_map");
  std::vector<op::Settled> settled;
  for (const op::OutputValues::Range& open : expected[map].open) {
    for (auto first = static_cast<std::size_t>(open.begin); first < static_cast<std::size_t>(open.end);
         first += experts) {
      const std::vector<bool> choice = delivered_choice(request, first, experts);
      RoutedToken<Tracked> token(p, logits.data + first);
      if (token.chose(choice) || !token.choose_instead(choice)) {
        continue;
      }
      for (std::size_t expert = 0; expert < experts; ++expert) {
        const bool chosen = token.chosen(expert);
        const Tracked weight = chosen ? token.weight(expert) : Tracked(0.0);
        settled.push_back({map, first + expert, true, chosen ? 1.0 : 0.0, 0, 0});
        settled.push_back({probs, first + expert, std::isfinite(weight.y), std::isfinite(weight.y) ? weight.y : 0,
                           weight.b, std::sqrt(weight.v)});
      }
    }
  }
  return settled;
}

/// However ties are resolved, every token has topk experts, and weights only for these. Tokens whose scores are NaN are
/// left out.
std::vector<op::Finding> findings(const op::FindingRequest& request) {
  const auto p = op::from_params<op::RouterTopkParams>(*request.params);
  const auto output = [&request](std::string_view port) {
    return std::ranges::find(request.outputs, port, &op::Delivered::port)->value;
  };
  const std::span<const double> map = output("routing_map");
  const std::span<const double> probs = output("probs");
  const core::Buffer<float>& bounds =
      std::ranges::find(request.expected->outputs, std::string_view("routing_map"), &op::OutputValues::port)->magnitude;
  double wrong_rows = 0, stray = 0;
  for (std::int64_t token = 0; token < p.tokens; ++token) {
    if (!bounds.empty() && std::isnan(bounds[static_cast<std::size_t>(token * p.experts)])) {
      continue;
    }
    double count = 0;
    for (std::int64_t expert = 0; expert < p.experts; ++expert) {
      const auto at = static_cast<std::size_t>(token * p.experts + expert);
      count += map[at];
      stray += map[at] == 0 && probs[at] != 0 ? 1 : 0;
    }
    wrong_rows += count == static_cast<double>(p.topk) ? 0 : 1;
  }
  return {{"experts per token", "routing_map", wrong_rows, 0, fmt::format("tokens without exactly {} experts", p.topk)},
          {"weights elsewhere", "probs", stray, 0, "weights of experts that the map leaves out"}};
}

}  // namespace

op::Reference router_topk_reference() {
  op::Reference reference;
  reference.values = &values;
  static constexpr std::array kGates = {
      op::OwnGate{"experts per token", "tokens for which the map does not select topk experts"},
      op::OwnGate{"weights elsewhere", "weights of experts that the map leaves out"},
  };
  reference.findings = &findings;
  reference.settle = &settle;
  reference.gates = kGates;
  reference.mistakes = &router_mistakes;
  reference.on_rows = &on_rows<op::RouterTopkParams, &op::RouterTopkParams::tokens>;
  reference.version = "router_topk-4";
  return reference;
}

}  // namespace numcheck::reference
