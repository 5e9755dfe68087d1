// Hypotheses about ALiBi: other slopes, another sign, distances from elsewhere.
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "diagnose/hypothesis.hpp"
#include "op/attention_params.hpp"

namespace numcheck::diagnose {
namespace {

constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;  // of which a bias is written down

double power(double exponent) {
  return static_cast<double>(static_cast<float>(std::exp2(exponent)));
}

struct Way {
  std::string_view name, cause;
  double (*slope)(std::int64_t head, const op::AttentionParams& p);
  bool from_diagonal = true;  ///< distances are 0 there, and not where query and key have the same index
};

constexpr std::array kWays = {
    Way{"alibi_geometric", "the slopes are 2^(-8 (h + 1) / heads) for every head h, although heads is no power of two",
        [](std::int64_t head, const op::AttentionParams& p) {
          return power(-8 * static_cast<double>(head + 1) / static_cast<double>(p.heads));
        }},
    Way{"alibi_from_zero", "the slopes begin with 2^0: each head has that of the one before it",
        [](std::int64_t head, const op::AttentionParams& p) {
          return head == 0 ? 1 : op::alibi_slope(head - 1, p.heads);
        }},
    Way{"alibi_reversed", "the heads have the slopes in reverse order",
        [](std::int64_t head, const op::AttentionParams& p) { return op::alibi_slope(p.heads - 1 - head, p.heads); }},
    Way{"alibi_of_first_head", "all heads have the slope of the first one",
        [](std::int64_t, const op::AttentionParams& p) { return op::alibi_slope(0, p.heads); }},
    Way{"alibi_negated", "distances are added to the scores, not subtracted",
        [](std::int64_t head, const op::AttentionParams& p) { return -op::alibi_slope(head, p.heads); }},
    Way{"alibi_before_scale", "ALiBi is added before the scores are scaled",
        [](std::int64_t head, const op::AttentionParams& p) { return p.factor() * op::alibi_slope(head, p.heads); }},
    Way{"alibi_of_same_index",
        "distances are those of indices, |i - j|, although there are more keys than queries, or fewer",
        [](std::int64_t head, const op::AttentionParams& p) { return op::alibi_slope(head, p.heads); }, false}};

/// The bias that ALiBi would be with these slopes; null if it is the declared one.
prepare::SharedDoubles bias_of(const op::AttentionParams& p, const Way& way) {
  const std::int64_t declared = p.diagonal(p.sq, p.sk), diagonal = way.from_diagonal ? declared : 0;
  auto bias = std::make_shared<core::Buffer<double>>(static_cast<std::size_t>(p.heads * p.sq * p.sk));
  bool differs = diagonal != declared;
  std::size_t at = 0;
  for (std::int64_t head = 0; head < p.heads; ++head) {
    const double slope = way.slope(head, p);
    differs = differs || slope != op::alibi_slope(head, p.heads);
    for (std::int64_t i = 0; i < p.sq; ++i) {
      for (std::int64_t j = 0; j < p.sk; ++j) {
        (*bias)[at++] = -slope * static_cast<double>(std::abs(i + diagonal - j));
      }
    }
  }
  return differs ? bias : nullptr;
}

std::vector<Hypothesis> other_slopes(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  std::vector<Hypothesis> all;
  if ((c.op->name != "attention_fwd" && c.op->name != "attention_bwd") || !evidence.sample.all()) {
    return all;
  }
  const auto p = op::from_params<op::AttentionParams>(c.params);
  if (p.bias != "alibi" || p.has_lengths() || p.heads * p.sq * p.sk > kMostPairs) {
    return all;
  }
  Trial biased = as_declared(evidence.subject);
  biased.c.params[*op::field_index(*c.op, "bias")] = std::string("post_scale");
  if (!c.op->check(biased.c.params, *c.mode).empty()) {
    return all;
  }
  for (const Way& way : kWays) {
    prepare::SharedDoubles bias = bias_of(p, way);
    if (bias == nullptr) {
      continue;
    }
    Trial trial = biased;
    trial.inputs.set("bias", std::move(bias));
    all.push_back({.name = std::string(way.name),
                   .family = "alibi",
                   .cause = std::string(way.cause),
                   .remedy = "Compare the slopes and the distances that both sides use (TransformerEngine: get_alibi, "
                             "alibi_slopes of DotProductAttention; flash-attention: alibi_slopes); what others say can "
                             "be given as tensor bias with --param bias=post_scale.",
                   .trial = std::move(trial)});
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"alibi_geometric, alibi_from_zero, alibi_reversed, alibi_of_first_head, alibi_negated, "
                 "alibi_before_scale, alibi_of_same_index",
                 "ALiBi with other slopes, another sign or other distances", &other_slopes, Stage::first, true}};

}  // namespace

std::span<const CatalogueRow> alibi_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
