#include "reference/attention_queries_beyond.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/codec.hpp"
#include "reference/attention_compared.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kTile = 128;

/// That of all heads over all of their keys.
double largest_mean(const AttentionProblem& problem) {
  const op::AttentionParams& p = problem.params();
  double largest = 0;
  for (std::int64_t head = 0; head < p.batches * p.heads; ++head) {
    const std::int64_t batch = head / p.heads;
    largest = std::fmax(largest, largest_mean_of_values(problem, batch, head % p.heads, problem.lengths(batch).keys));
  }
  return largest;
}

}  // namespace

double largest_mean_of_values(const AttentionProblem& problem, std::int64_t batch, std::int64_t head,
                              std::int64_t keys) {
  const HeadRows values = problem.values(batch, head);
  const double weights = static_cast<double>(keys) + std::exp(problem.sink(head));
  double largest = 0;
  for (std::int64_t c = 0; c < problem.params().value_channels(); ++c) {
    double sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      sum += values.data[j * values.stride + c];
    }
    largest = std::fmax(largest, std::fabs(sum / weights) * problem.value_scale());
  }
  return largest;
}

void explain_queries_beyond(const op::FindingRequest& request, const AttentionProblem& problem,
                            std::vector<op::Finding>& findings) {
  const op::AttentionParams& p = problem.params();
  const auto amax = std::ranges::find(request.outputs, std::string_view("o_amax"), &op::Delivered::port);
  const std::optional<Compared> o = compared(request, "o");
  if (amax == request.outputs.end() || !o || !core::is_fp8(o->dtype) || p.mask != "none" ||
      (p.window_left >= 0 || p.window_right >= 0) || p.bias != "none" || p.sq % kTile == 0) {
    return;
  }
  const double got = amax->value[0], largest = largest_magnitude(o->got);
  constexpr double kRounding = 1e-3;  // of FP8 products' sums
  const double beyond = largest_mean(problem);
  if (got > largest && std::fabs(got - beyond) <= kRounding * got) {
    add_if_explained(findings, op::kQueriesBeyond, Compared{.port = amax->port}, op::Finding::About::numbers,
                     1 - std::fabs(got - beyond) / (got - largest),
                     "queries of zeros beyond the last one count in the amax");
  }
}

}  // namespace numcheck::reference
