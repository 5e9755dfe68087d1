#include "reference/attention_queries_beyond.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/codec.hpp"
#include "reference/attention_compared.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kTile = 128;

/// sums[j] is that of channel c of the first j values.
void add_up(const HeadRows& values, std::int64_t c, std::span<double> sums) {
  for (std::size_t j = 1; j < sums.size(); ++j) {
    sums[j] = sums[j - 1] + values.data[static_cast<std::int64_t>(j - 1) * values.stride + c];
  }
}

/// Of one head's queries beyond the last one, each over the keys that the mask shows to it.
double largest_output_beyond(const AttentionProblem& problem, std::int64_t batch, std::int64_t head) {
  const op::AttentionParams& p = problem.params();
  const double beside = std::exp(problem.sink(head));
  std::vector<double> sums(static_cast<std::size_t>(p.sk) + 1);
  double largest = 0;
  for (std::int64_t c = 0; c < p.value_channels(); ++c) {
    add_up(problem.values(batch, head), c, sums);
    for (std::int64_t i = p.sq; i % kTile != 0; ++i) {
      const op::KeyRange keys = p.visible(i, p.sq, p.sk);
      if (keys.begin < keys.end) {
        const double sum = sums[static_cast<std::size_t>(keys.end)] - sums[static_cast<std::size_t>(keys.begin)];
        largest = std::fmax(largest, std::fabs(sum) / (static_cast<double>(keys.end - keys.begin) + beside));
      }
    }
  }
  return largest * problem.value_scale();
}

double largest_output_beyond(const AttentionProblem& problem) {
  const op::AttentionParams& p = problem.params();
  double largest = 0;
  for (std::int64_t head = 0; head < p.batches * p.heads; ++head) {
    largest = std::fmax(largest, largest_output_beyond(problem, head / p.heads, head % p.heads));
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
  if (amax == request.outputs.end() || !o || !core::is_fp8(o->dtype) || p.has_lengths() || p.bias != "none" ||
      p.sq % kTile == 0) {
    return;
  }
  const double got = amax->value[0], largest = largest_magnitude(o->got);
  if (!(got > largest)) {
    return;
  }
  constexpr double kRounding = 1e-3;  // of FP8 products' sums
  const double beyond = largest_output_beyond(problem);
  if (std::fabs(got - beyond) <= kRounding * got) {
    add_if_explained(findings, op::kQueriesBeyond, Compared{.port = amax->port}, op::Finding::About::numbers,
                     1 - std::fabs(got - beyond) / (got - largest),
                     "queries of zeros beyond the last one count in the amax");
  }
}

}  // namespace numcheck::reference
