#include "reference/attention_diagnosis.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "op/attention_layout.hpp"
#include "reference/attention_compared.hpp"
#include "reference/attention_empty_sequences.hpp"
#include "reference/attention_keys_beyond.hpp"
#include "reference/attention_leaks.hpp"
#include "reference/attention_lost_queries.hpp"
#include "reference/attention_missing_sink.hpp"
#include "reference/attention_padded_amax.hpp"
#include "reference/attention_problem.hpp"
#include "reference/attention_queries_beyond.hpp"
#include "reference/attention_zero_channels.hpp"

namespace numcheck::reference {
namespace {

using About = op::Finding::About;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Calls body(batch, head, query) for all queries that count.
template <class Body>
void for_each_query(const AttentionProblem& problem, const Body& body) {
  const op::AttentionParams& p = problem.params();
  for (std::int64_t task = 0; task < p.batches * p.heads; ++task) {
    for (std::int64_t i = 0; i < problem.lengths(task / p.heads).queries; ++i) {
      body(task / p.heads, task % p.heads, i);
    }
  }
}

std::size_t statistic_index(const op::AttentionParams& p, std::int64_t batch, std::int64_t head, std::int64_t i) {
  return element_at(op::statistic_place(p, batch, head), i);
}

/// The part of an output's broken elements that are in queries of which `holds`, and were written.
template <class Holds>
double share_of_broken(const AttentionProblem& problem, const Compared& output, std::int64_t channels,
                       const Holds& holds) {
  const op::AttentionParams& p = problem.params();
  double broken = 0, explained = 0;
  for_each_query(problem, [&](std::int64_t batch, std::int64_t head, std::int64_t i) {
    const op::HeadPlace place = op::head_place(p, op::Side::queries, batch, head, channels);
    const std::size_t first = element_at(place, i);
    double written = 0;
    for (std::size_t at = first; at < first + static_cast<std::size_t>(channels); ++at) {
      broken += output.is_broken(at) ? 1 : 0;
      written += output.is_broken(at) && !output.is_unwritten(at) ? 1 : 0;
    }
    explained += written > 0 && holds(batch, head, i) ? written : 0;
  });
  return explained / broken;
}

void explain_negative_scale(const AttentionProblem& problem, const Compared& lse, const std::optional<Compared>& o,
                            std::vector<op::Finding>& findings) {
  const op::AttentionParams& p = problem.params();
  if (p.factor() >= 0) {
    return;
  }
  const auto is_infinite = [&](std::int64_t batch, std::int64_t head, std::int64_t i) {
    return lse.got[statistic_index(p, batch, head, i)] == kInfinity;
  };
  const std::string cause = "masked scores are -infinity before they are scaled by a negative number";
  double broken = 0, infinite = 0;
  for_each_query(problem, [&](std::int64_t batch, std::int64_t head, std::int64_t i) {
    const bool is_broken = lse.is_broken(statistic_index(p, batch, head, i));
    broken += is_broken ? 1 : 0;
    infinite += is_broken && is_infinite(batch, head, i) ? 1 : 0;
  });
  add_if_explained(findings, op::kNegativeScale, lse, About::pattern, infinite / broken, cause);
  if (o) {
    add_if_explained(findings, op::kNegativeScale, *o, About::pattern,
                     share_of_broken(problem, *o, p.value_channels(), is_infinite), cause);
  }
}

/// Scores that are stored in FP16 overflow to infinity, of which the softmax makes NaN.
void explain_overflow(const AttentionProblem& problem, const Compared& lse, const Compared& o,
                      std::vector<op::Finding>& findings) {
  if (o.dtype != core::Dtype::fp16) {
    return;
  }
  const op::AttentionParams& p = problem.params();
  // What is stored first is the product: before a bias is added to it, it has not been scaled.
  const double stored = p.bias == "pre_scale" ? std::min(1.0, std::fabs(p.factor())) : 1;
  const double largest = core::dtype_info(core::Dtype::fp16).max_finite * stored;
  const auto overflows = [&](std::int64_t batch, std::int64_t head, std::int64_t i) {
    return lse.expected[statistic_index(p, batch, head, i)] > largest;  // the largest score is hardly less
  };
  double broken = 0, beyond = 0;
  for_each_query(problem, [&](std::int64_t batch, std::int64_t head, std::int64_t i) {
    const bool is_broken = lse.is_broken(statistic_index(p, batch, head, i));
    broken += is_broken ? 1 : 0;
    beyond += is_broken && overflows(batch, head, i) ? 1 : 0;
  });
  const std::string cause = "scores above 65504 overflow in fp16";
  add_if_explained(findings, op::kScoresOverflow, lse, About::pattern, beyond / broken, cause);
  add_if_explained(findings, op::kScoresOverflow, o, About::pattern,
                   share_of_broken(problem, o, p.value_channels(), overflows), cause);
}

void explain_alibi(const AttentionProblem& problem, const Compared& lse, std::vector<op::Finding>& findings) {
  const op::AttentionParams& p = problem.params();
  if (p.bias != "alibi") {
    return;
  }
  double error = 0, left = 0;
  for_each_query(problem, [&](std::int64_t batch, std::int64_t head, std::int64_t i) {
    const Lengths lengths = problem.lengths(batch);
    const std::size_t at = statistic_index(p, batch, head, i);
    const double off = lse.got[at] - lse.expected[at];
    const double shift =
        op::alibi_slope(head, p.heads) * static_cast<double>(p.diagonal(lengths.queries, lengths.keys));
    if (std::isfinite(off)) {
      error += off * off;
      left += (off - shift) * (off - shift);
    }
  });
  add_if_explained(findings, op::kAlibiShift, lse, About::numbers, 1 - left / error,
                   "the log-sum-exp lacks ALiBi's shift of the diagonal");
}

}  // namespace

std::vector<op::Finding> diagnose_attention(const op::FindingRequest& request) {
  std::vector<op::Finding> findings;
  const AttentionProblem problem(op::from_params<op::AttentionParams>(*request.params), request.inputs);
  if (const std::optional<Compared> lse = compared(request, "lse")) {
    const std::optional<Compared> o = compared(request, "o");
    explain_negative_scale(problem, *lse, o, findings);
    explain_alibi(problem, *lse, findings);
    if (o) {
      explain_overflow(problem, *lse, *o, findings);
    }
  }
  explain_empty_sequences(request, problem, findings);
  explain_leaks(request, problem, findings);
  explain_missing_sink(request, findings);
  explain_padded_amax(request, problem, findings);
  explain_queries_beyond(request, problem, findings);
  return findings;
}

std::vector<op::Finding> diagnose_attention_gradients(const op::FindingRequest& request) {
  constexpr double kLeastStatistic = -88.72;  // exp(88.73) is more than FP32 holds
  std::vector<op::Finding> findings;
  const AttentionProblem problem(op::from_params<op::AttentionParams>(*request.params), request.inputs);
  const op::AttentionParams& p = problem.params();
  const op::Operand& lse = op::operand_named(request.inputs, "lse");
  if (const std::optional<Compared> dq = compared(request, "dq")) {
    const double share = share_of_broken(problem, *dq, p.d, [&](std::int64_t batch, std::int64_t head, std::int64_t i) {
      const double statistic = lse.data[statistic_index(p, batch, head, i)];
      return statistic < kLeastStatistic && std::isfinite(statistic);
    });
    add_if_explained(findings, op::kLseOverflow, *dq, About::pattern, share,
                     "exp(-lse) overflows: the log-sum-exp is below -88.7");
  }
  explain_empty_sequences(request, problem, findings);
  explain_gradient_leaks(request, problem, findings);
  explain_zero_channels(request, problem, findings);
  explain_keys_beyond(request, problem, findings);
  explain_lost_queries(request, findings);
  return findings;
}

}  // namespace numcheck::reference
