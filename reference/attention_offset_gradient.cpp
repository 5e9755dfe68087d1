#include "reference/attention_offset_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "reference/attention_gradient_fates.hpp"
#include "reference/tracked_output.hpp"
#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference {
namespace {

using tolerance::GradientFact;
using tolerance::OffsetFact;

/// The square of what becomes of a number that is subnormal in FP32: some kernels take it for zero, and it has few bits.
double lost_below_normal(double x) {
  return std::fabs(x) < tolerance::kFlush ? x * x : 0;
}

/// In FP32 on every device: its error follows from the formula. What is not finite counts as 0.
Tracked head_gradient(const AttentionGradients& g, std::int64_t index) {
  constexpr double u = tolerance::kUnit32;
  const double offset = g.problem().sink(index);
  const auto width = static_cast<double>(g.params().value_channels());
  tolerance::Sum<Tracked> sum;
  for (std::int64_t batch = 0; batch < g.params().batches; ++batch) {
    const GradientHead& head = g.head(batch, index);
    for (std::int64_t i = 0; i < head.lengths.queries; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double weight = std::exp(offset - head.lse[at]), lse = head.lse[at];
      Tracked p(weight), dot(head.dot[at]);
      if (head.errors) {
        const double argument = std::fabs(offset) + std::fabs(lse) + std::fabs(offset - lse);
        const double relative = u * (5 * argument + 8);
        p.b = weight * relative * std::exp(relative) + tolerance::kFlush;
        p.v =
            weight * weight * u * u * (tolerance::kRoundVariance * argument * argument + 3) + lost_below_normal(weight);
        dot.b = (width + 4) * u * head.errors->dot_magnitude[at] + 2 * width * tolerance::kFlush;
        dot.v = u * u * head.errors->dot_variance[at];
      }
      Tracked term = -(p * dot);
      term.v += head.errors ? lost_below_normal(term.y) : 0;
      sum.add(std::isfinite(term.y) ? term : Tracked());
    }
  }
  return sum.result();
}

/// True if a product of a gradient and a value may overflow: where D is the sum of p dp, NaN may come of weights of 0.
bool may_overflow(const AttentionGradients& g, const GradientHead& head, const GradientOutput& dq) {
  const op::AttentionParams& p = g.params();
  const std::span<const float> changes =
      dq.fact(GradientFact::largest_change)
          .subspan(static_cast<std::size_t>((head.batch * p.heads + head.index) * p.sq),
                   static_cast<std::size_t>(head.lengths.queries));
  return !head.special && std::ranges::any_of(changes, [](float change) {
    return !(static_cast<double>(change) < tolerance::kMayOverflow);
  });
}

/// Sets the gradient of one head's offset.
void set(const AttentionGradients& g, std::int64_t index, const GradientOutput& dq, TrackedOutput& offset) {
  const auto at = static_cast<std::size_t>(index);
  const Tracked sum = head_gradient(g, index);
  bool nan = false, unknown = !g.scales_fit() || !(std::fabs(sum.y) + sum.b < tolerance::kMayOverflow);
  double infinities = 0;
  for (std::int64_t batch = 0; batch < g.params().batches; ++batch) {
    const GradientHead& head = g.head(batch, index);
    unknown = unknown || may_overflow(g, head, dq);
    for (std::int64_t i = 0; i < head.lengths.queries; ++i) {
      const Fate fate = fate_of_sink(g, head, i);
      nan = nan || fate == Fate::nan;
      unknown = unknown || fate == Fate::unknown;
      infinities -= fate == Fate::infinite ? head.dot[static_cast<std::size_t>(i)] : 0;
    }
  }
  if (nan || (!unknown && std::isnan(infinities))) {
    offset.set(at, {std::numeric_limits<double>::quiet_NaN(), 0, 0});
  } else if (unknown) {
    offset.set_undetermined(at, 0);
  } else {
    offset.set(at, {sum.y + infinities, sum.b, sum.v});
  }
}

/// tolerance::OffsetFact of all heads, with what the facts of dq say about scores.
std::vector<core::Buffer<float>> offset_facts(const AttentionGradients& g, const GradientOutput& dq) {
  const op::AttentionParams& p = g.params();
  std::vector<core::Buffer<float>> facts;
  for (std::size_t f = 0; f < static_cast<std::size_t>(OffsetFact::count); ++f) {
    facts.emplace_back(static_cast<std::size_t>(p.heads));
  }
  for (std::int64_t index = 0; index < p.heads; ++index) {
    const double offset = g.problem().sink(index);
    double sum = 0, squares = 0, scores = 0, seconds = 0, largest = 0, products = 0, arguments = 0;
    for (std::int64_t batch = 0; batch < p.batches; ++batch) {
      const GradientHead& head = g.head(batch, index);
      for (std::int64_t i = 0; i < head.lengths.queries; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto row = static_cast<std::size_t>((batch * p.heads + index) * p.sq + i);
        const auto fact = [&](GradientFact which) {
          return static_cast<double>(dq.facts[static_cast<std::size_t>(which)][row]);
        };
        const double x = std::exp(offset - head.lse[at]) * head.dot[at];
        if (!std::isfinite(x)) {
          continue;
        }
        sum += std::fabs(x);
        squares += x * x;
        scores += x * x * fact(GradientFact::statistic_square);
        seconds += x * x * fact(GradientFact::statistic_second);
        largest = std::max(largest, fact(GradientFact::largest_score));
        products += std::fabs(x) * fact(GradientFact::largest_product);
        arguments += std::fabs(x) * fact(GradientFact::largest_argument);
      }
    }
    const auto set = [&](OffsetFact which, double value) {
      facts[static_cast<std::size_t>(which)][static_cast<std::size_t>(index)] = tolerance::kept(which, value);
    };
    set(OffsetFact::sink, std::fabs(offset));
    set(OffsetFact::sum, sum);
    set(OffsetFact::squares, squares);
    set(OffsetFact::scores, scores);
    set(OffsetFact::seconds, seconds);
    set(OffsetFact::largest, largest);
    set(OffsetFact::products, products);
    set(OffsetFact::arguments, arguments);
  }
  return facts;
}

}  // namespace

op::OutputValues offset_gradient(const AttentionGradients& g, const GradientOutput& dq) {
  const auto heads = static_cast<std::size_t>(g.params().heads);
  TrackedOutput offset("dsoftmax_offset", heads, g.values_only());
  core::parallel_for(heads, [&](std::size_t h) {
    const auto index = static_cast<std::int64_t>(h);
    g.values_only() ? offset.set(h, head_gradient(g, index)) : set(g, index, dq, offset);
  });
  op::OutputValues values = std::move(offset).take();
  if (!g.values_only()) {
    values.row_facts = offset_facts(g, dq);
  }
  return values;
}

}  // namespace numcheck::reference
