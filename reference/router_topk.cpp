#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "op/moe.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"
#include "reference/tracked_output.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

using tolerance::Sum;

constexpr double kSmall = 1e-20;  // TransformerEngine adds it to the sum of sigmoid scores

/// True if exp(x - largest) is exactly 0. A masked expert has such a logit.
template <class Scalar>
bool vanishes(const Scalar& x, const Scalar& largest) {
  return std::isinf(tolerance::value_of(x)) && tolerance::value_of(x) < tolerance::value_of(largest);
}

template <class Scalar>
std::vector<Scalar> softmax(const std::vector<Scalar>& logits) {
  Scalar largest(-std::numeric_limits<double>::infinity());
  for (const Scalar& x : logits) {
    largest = tolerance::larger_of(largest, x);
  }
  std::vector<Scalar> out;
  Sum<Scalar> sum;
  for (const Scalar& x : logits) {
    out.push_back(vanishes(x, largest) ? Scalar(0.0) : tolerance::exponential(x - largest, true));
    sum.add(out.back());
  }
  const Scalar total = sum.result();
  for (Scalar& x : out) {
    x = x / total;
  }
  return out;
}

/// Below -88.7 the exponential of -x overflows FP32, and the score is 0 instead of a subnormal number.
double flushed(double x) {
  return x;
}
Tracked flushed(const Tracked& x) {
  return tolerance::detail::with_underflow(x, tolerance::kFlush);
}

template <class Scalar>
std::vector<Scalar> sigmoid(const std::vector<Scalar>& logits) {
  std::vector<Scalar> out;
  for (const Scalar& x : logits) {
    const double given = tolerance::value_of(x);
    out.push_back(std::isinf(given) ? Scalar(given > 0 ? 1.0 : 0.0)
                                    : flushed(Scalar(1.0) / (Scalar(1.0) + tolerance::exponential(-x, true))));
  }
  return out;
}

double bound_of(double) {
  return 0;
}
double bound_of(const Tracked& x) {
  return x.b;
}

/// One token: its scores, which experts are chosen, and for which of them FP32 arithmetic may decide otherwise.
template <class Scalar>
class Token {
 public:
  Token(const op::RouterTopkParams& p, const double* logits) : p_(p), logits_(logits, logits + p.experts) {
    const bool late = p.score == "softmax_post";
    const std::vector<Scalar> scores = late ? logits_ : p.score == "sigmoid" ? sigmoid(logits_) : softmax(logits_);
    unknown_ = std::ranges::any_of(scores, [](const Scalar& x) { return std::isnan(tolerance::value_of(x)); });
    if (!unknown_) {
      choose(scores);
      weigh(scores, late);
    }
  }

  /// True if a score is NaN: nothing defines what is larger than a NaN.
  [[nodiscard]] bool unknown() const { return unknown_; }

  [[nodiscard]] bool chosen(std::size_t expert) const { return chosen_[expert]; }
  [[nodiscard]] bool unsettled(std::size_t expert) const { return unsettled_[expert]; }
  /// True if another choice of experts would change every weight of the row.
  [[nodiscard]] bool row_unsettled() const { return row_unsettled_ && p_.score != "softmax_pre"; }
  [[nodiscard]] const Scalar& weight(std::size_t expert) const { return weights_[expert]; }

 private:
  void choose(const std::vector<Scalar>& scores) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return tolerance::value_of(scores[a]) > tolerance::value_of(scores[b]);
    });
    chosen_.assign(scores.size(), false);
    unsettled_.assign(scores.size(), false);
    const auto k = static_cast<std::size_t>(p_.topk);
    std::for_each_n(order.begin(), k, [this](std::size_t expert) { chosen_[expert] = true; });
    if (k == scores.size()) {
      return;
    }
    const Scalar& last_in = scores[order[k - 1]];
    const Scalar& first_out = scores[order[k]];
    for (std::size_t expert = 0; expert < scores.size(); ++expert) {
      const Scalar& rival = chosen_[expert] ? first_out : last_in;
      const double gap = std::fabs(tolerance::value_of(scores[expert]) - tolerance::value_of(rival));
      // Scores are rounded to FP32 before they are compared: equal ones are tied even if they are exact. The gap
      // between two infinities is NaN.
      unsettled_[expert] = !(gap > bound_of(scores[expert]) + bound_of(rival));
      row_unsettled_ = row_unsettled_ || unsettled_[expert];
    }
  }

  void weigh(const std::vector<Scalar>& scores, bool late) {
    weights_.assign(scores.size(), Scalar(0.0));
    std::vector<std::size_t> experts;
    std::vector<Scalar> picked;
    for (std::size_t expert = 0; expert < scores.size(); ++expert) {
      if (chosen_[expert]) {
        experts.push_back(expert);
        picked.push_back(scores[expert]);
      }
    }
    if (late) {
      picked = softmax(picked);
    } else if (p_.score == "sigmoid" && p_.topk > 1) {
      Sum<Scalar> sum;
      std::ranges::for_each(picked, [&sum](const Scalar& x) { sum.add(x); });
      const Scalar total = sum.result() + Scalar(kSmall);
      std::ranges::for_each(picked, [&total](Scalar& x) { x = x / total; });
    }
    for (std::size_t i = 0; i < experts.size(); ++i) {
      weights_[experts[i]] = picked[i] * Scalar(static_cast<double>(static_cast<float>(p_.scaling)));
    }
  }

  const op::RouterTopkParams& p_;
  std::vector<Scalar> logits_, weights_;
  std::vector<bool> chosen_, unsettled_;
  bool row_unsettled_ = false;
  bool unknown_ = false;
};

template <class Scalar>
void route(const op::RouterTopkParams& p, const double* logits, std::size_t first, TrackedOutput& probs,
           TrackedOutput& map) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();  // as a yardstick: not checked
  const Token<Scalar> token(p, logits);
  for (std::size_t expert = 0; expert < static_cast<std::size_t>(p.experts); ++expert) {
    const std::size_t at = first + expert;
    if (token.unknown()) {
      map.set(at, 0, kNan, kNan);
      probs.set(at, 0, kNan, kNan);
      continue;
    }
    const double one = token.chosen(expert) ? 1 : 0;
    if (token.unsettled(expert)) {
      map.set_undetermined(at, one);
    } else {
      map.set(at, one, 0, 0);
    }
    const double weight = tolerance::value_of(token.weight(expert));
    const bool open = token.unsettled(expert) || (token.chosen(expert) && token.row_unsettled());
    if (open && !std::isfinite(weight)) {
      probs.set(at, 0, kNan, kNan);
    } else if (open) {
      probs.set_undetermined(at, weight);
    } else {
      probs.set(at, token.weight(expert));
    }
  }
}

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::RouterTopkParams>(*request.params);
  const op::Operand& logits = op::operand_named(request.inputs, "logits");
  TrackedOutput probs("probs", logits.elements(), request.values_only);
  TrackedOutput map("routing_map", logits.elements(), request.values_only);
  core::parallel_for(static_cast<std::size_t>(p.tokens), [&](std::size_t token) {
    const std::size_t first = token * static_cast<std::size_t>(p.experts);
    if (request.values_only) {
      route<double>(p, logits.data + first, first, probs, map);
    } else {
      route<Tracked>(p, logits.data + first, first, probs, map);
    }
  });
  op::Values result;
  result.outputs.push_back(std::move(probs).take());
  result.outputs.push_back(std::move(map).take());
  return result;
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
  reference.gates = kGates;
  reference.mistakes = &router_mistakes;
  reference.version = "router_topk-3";
  return reference;
}

}  // namespace numcheck::reference
