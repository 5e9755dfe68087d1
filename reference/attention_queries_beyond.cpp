#include "reference/attention_queries_beyond.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/codec.hpp"
#include "model/fused_step.hpp"
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

/// A query beyond the last one, of the channel and head whose output is largest.
struct Beyond {
  double output = 0;
  std::int64_t head = 0, channel = 0;  ///< the head of all sequences
  op::KeyRange keys{};
};

/// Each over the keys that the mask shows to it.
Beyond largest_output_beyond(const AttentionProblem& problem, std::int64_t head) {
  const op::AttentionParams& p = problem.params();
  const double beside = std::exp(problem.sink(head % p.heads));
  std::vector<double> sums(static_cast<std::size_t>(p.sk) + 1);
  Beyond largest{.head = head};
  for (std::int64_t c = 0; c < p.value_channels(); ++c) {
    add_up(problem.values(head / p.heads, head % p.heads), c, sums);
    for (std::int64_t i = p.sq; i % kTile != 0; ++i) {
      const op::KeyRange keys = p.visible(i, p.sq, p.sk);
      if (keys.begin < keys.end) {
        const double sum = sums[static_cast<std::size_t>(keys.end)] - sums[static_cast<std::size_t>(keys.begin)];
        const double output =
            std::fabs(sum) / (static_cast<double>(keys.end - keys.begin) + beside) * problem.value_scale();
        largest = output > largest.output ? Beyond{output, head, c, keys} : largest;
      }
    }
  }
  return largest;
}

Beyond largest_output_beyond(const AttentionProblem& problem) {
  const op::AttentionParams& p = problem.params();
  Beyond largest;
  for (std::int64_t head = 0; head < p.batches * p.heads; ++head) {
    const Beyond of_head = largest_output_beyond(problem, head);
    largest = of_head.output > largest.output ? of_head : largest;
  }
  return largest;
}

/// That output from sums in the accumulators of sm_90's FP8 instructions, which keep 14 significant bits and cut each product
/// off where these end: sums of many numbers of one sign lose up to some hundredths. Each weight is the code of s_scale.
double accumulated(const AttentionProblem& problem, const Beyond& of, double weight_scale) {
  constexpr model::StepModel kHopper{.L = 32, .F = 13, .rho = model::Rounding::rz_e8m13};
  constexpr core::Dtype kCode = core::Dtype::fp8_e4m3;
  const op::AttentionParams& p = problem.params();
  const HeadRows values = problem.values(of.head / p.heads, of.head % p.heads);
  const auto operand = [kCode](double value) {
    return model::decode_operand(static_cast<std::uint32_t>(core::encode(value, kCode, core::Overflow::saturate)),
                                 kCode);
  };
  const std::vector<model::Operand> weights(static_cast<std::size_t>(kHopper.L), operand(weight_scale));
  std::vector<model::Operand> step(static_cast<std::size_t>(kHopper.L));
  std::uint32_t sum = 0;
  for (std::int64_t first = of.keys.begin / kHopper.L * kHopper.L; first < of.keys.end; first += kHopper.L) {
    for (std::int64_t j = first; j < first + kHopper.L; ++j) {
      const bool seen = j >= of.keys.begin && j < of.keys.end;
      step[static_cast<std::size_t>(j - first)] = operand(seen ? values.data[j * values.stride + of.channel] : 0);
    }
    sum = model::fused_step(kHopper, weights, kCode, step, kCode, sum);
  }
  const double beside = std::exp(problem.sink(of.head % p.heads));
  return std::fabs(static_cast<double>(std::bit_cast<float>(sum))) / weight_scale * problem.value_scale() /
         (static_cast<double>(of.keys.end - of.keys.begin) + beside);
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
  constexpr double kOfSums = 1e-3, kOfProducts = 1e-5;  // sums of 14 bits, and all that is left if these are known
  const Beyond beyond = largest_output_beyond(problem);
  const op::Operand* weight_scale = op::find_operand(request.inputs, "s_scale");
  const double sum = weight_scale == nullptr ? beyond.output : accumulated(problem, beyond, weight_scale->data[0]);
  const double off = std::fabs(got - beyond.output), off_sum = std::fabs(got - sum);
  if (off <= kOfSums * got || off_sum <= kOfProducts * got) {
    add_if_explained(findings, op::kQueriesBeyond, Compared{.port = amax->port}, op::Finding::About::numbers,
                     1 - std::fmin(off, off_sum) / (got - largest),
                     "queries of zeros beyond the last one count in the amax");
  }
}

}  // namespace numcheck::reference
