// Sums of gradients whose parts or partial sums are declared to be rounded: dbias over sequences, dk and dv over heads.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "attention_rounding_case.hpp"
#include "core/codec.hpp"
#include "op/attention_bwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::expect_predicted;
using testing::Fit;
using testing::fit_of;
using testing::Inputs;
using testing::kernel_of;
using testing::RoundingCase;
using testing::Unfused;
using Numbers = std::vector<double>;

/// Part `number` of `of` equal ones along the outermost dimension.
Numbers part_of(const Numbers& all, std::size_t number, std::size_t of) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(all.size() / of * number);
  return {begin, begin + static_cast<std::ptrdiff_t>(all.size() / of)};
}

/// Gradients of one sequence or head of a case in layout bhsd, whose tensors but those named in `whole` are cut into parts.
op::Values values_of_part(const RoundingCase& c, const op::AttentionParams& p, std::size_t number, std::size_t of,
                          std::initializer_list<std::string_view> whole) {
  Inputs inputs;
  for (const auto& [port, numbers] : c.inputs) {
    inputs[port] = std::ranges::find(whole, port) != whole.end() ? numbers : part_of(numbers, number, of);
  }
  return testing::evaluate({&op::attention_bwd(), attention_bwd_reference(), op::to_params(p), c.kernel.mode}, inputs);
}

/// dbias of each sequence alone.
std::vector<Numbers> bias_gradients_of_sequences(const RoundingCase& c) {
  op::AttentionParams one = c.kernel.p;
  one.batches = 1;
  const auto sequences = static_cast<std::size_t>(c.kernel.p.batches);
  std::vector<Numbers> parts;
  for (std::size_t b = 0; b < sequences; ++b) {
    parts.push_back(testing::value_of(values_of_part(c, one, b, sequences, {"bias", "softmax_offset"}), "dbias"));
  }
  return parts;
}

TEST(AttentionRoundedSums, of_sequences_are_predicted) {
  for (const char* mode : {"bf16", "fp16"}) {
    for (const std::int64_t sequences : {2, 3, 9}) {
      Unfused kernel = kernel_of(mode, "none", 2);
      kernel.p.batches = sequences;
      const RoundingCase c(kernel, {"normal"});
      const std::string what = std::string(mode) + ", sequences " + std::to_string(sequences);
      const std::vector<Numbers> parts = bias_gradients_of_sequences(c);
      Numbers sum(parts.front().size());
      for (const Numbers& part : parts) {
        for (std::size_t n = 0; n < sum.size(); ++n) {
          sum[n] = core::round_to(sum[n], kernel.format()) + part[n];
        }
      }
      expect_predicted(fit_of(c.backward, c.backward_values, "dbias", sum, {.bias_sum = true}), what);
      EXPECT_GT(fit_of(c.backward, c.backward_values, "dbias", sum, {}).rms, 5) << what;
    }
  }
}

TEST(AttentionRoundedSums, of_parts_that_may_overflow_are_undetermined) {
  constexpr double kLargest = 65504, kUndetermined = 1e38;
  Unfused kernel = kernel_of("fp16", "none", 2);
  kernel.p.batches = 2;
  const RoundingCase c(kernel, {.name = "large", .q = 0.025, .gradient = 1e4, .k = 40});
  const std::vector<Numbers> parts = bias_gradients_of_sequences(c);
  const std::vector<float> bound = predicted(c.backward, c.backward_values, "dbias", {.bias_sum = true}).bound;
  std::array<int, 4> seen{};
  for (std::size_t n = 0; n < bound.size(); ++n) {
    const double a = parts[0][n], b = parts[1][n], y = std::fabs(a + b);
    if (std::fabs(a) > kLargest && std::fabs(b) > kLargest && a * b < 0) {
      ++seen[0];  // NaN
      EXPECT_GT(bound[n], kUndetermined) << a << ' ' << b;
    } else if (std::max(std::fabs(a), std::fabs(b)) > kLargest && y < kLargest) {
      ++seen[1];  // an infinity, or not
      EXPECT_GT(bound[n], kUndetermined) << a << ' ' << b;
    } else if (y > 1.1 * kLargest && std::sqrt(2 * (a * a + b * b)) < 1.8 * kLargest) {
      ++seen[2];  // an infinity in any case
      EXPECT_LT(bound[n], kUndetermined) << a << ' ' << b;
    } else if (std::fabs(a) + std::fabs(b) < kLargest / 2) {
      ++seen[3];
      EXPECT_LT(bound[n], kUndetermined) << a << ' ' << b;
    }
  }
  EXPECT_GT(*std::ranges::min_element(seen), 10) << seen[0] << ' ' << seen[1] << ' ' << seen[2] << ' ' << seen[3];
}

TEST(AttentionRoundedSums, of_scaled_parts_are_predicted) {
  for (const char* mode : {"bf16", "fp16"}) {
    for (const std::int64_t sequences : {1, 2, 9}) {
      for (const double scale : {0.3, -1.7, 1e-4}) {
        Unfused kernel = kernel_of(mode, "none", 2);
        kernel.p.batches = sequences;
        kernel.p.scale = scale;
        const RoundingCase c(kernel, {"normal"});
        const std::string what =
            std::string(mode) + ", sequences " + std::to_string(sequences) + ", scale " + std::to_string(scale);
        const std::vector<Numbers> parts = bias_gradients_of_sequences(c);
        Numbers sum(parts.front().size());
        for (const Numbers& part : parts) {
          for (std::size_t n = 0; n < sum.size(); ++n) {
            sum[n] += core::round_to(part[n] * kernel.p.factor(), kernel.format()) / kernel.p.factor();
          }
        }
        expect_predicted(fit_of(c.backward, c.backward_values, "dbias", sum, {.scaled_bias = true}), what);
        EXPECT_GT(fit_of(c.backward, c.backward_values, "dbias", sum, {}).rms, 5) << what;
      }
    }
  }
}

TEST(AttentionRoundedSums, of_heads_are_predicted) {
  for (const char* mode : {"bf16", "fp16"}) {
    Unfused kernel = kernel_of(mode, "causal", 0);
    kernel.p.heads = 4;
    kernel.p.kv_heads = 1;
    const RoundingCase c(kernel, {"normal"});
    op::AttentionParams one = kernel.p;
    one.heads = 1;
    for (const char* port : {"dk", "dv"}) {
      Numbers sum(testing::value_of(c.backward_values, port).size());
      for (std::size_t head = 0; head < 4; ++head) {
        const Numbers part = testing::value_of(values_of_part(c, one, head, 4, {"k", "v"}), port);
        for (std::size_t n = 0; n < sum.size(); ++n) {
          sum[n] += core::round_to(part[n], kernel.format());
        }
      }
      const Fit fit = fit_of(c.backward, c.backward_values, port, sum, {.head_gradients = true});
      expect_predicted(fit, std::string(port) + ", " + mode);
      EXPECT_LT(fit.rms, fit_of(c.backward, c.backward_values, port, sum, {}).rms) << port << ' ' << mode;
    }
  }
}

TEST(AttentionRoundedSums, of_heads_may_leave_out_subnormal_parts) {
  constexpr double kSmallestNormal = 0x1p-126;
  Unfused kernel = kernel_of("bf16", "causal", 0);
  kernel.p.heads = 4;
  kernel.p.kv_heads = 1;
  const RoundingCase c(kernel, {.name = "tiny", .gradient = 0x1p-126});
  op::AttentionParams one = kernel.p;
  one.heads = 1;
  Numbers sum(testing::value_of(c.backward_values, "dv").size());
  std::size_t left_out = 0;
  for (std::size_t head = 0; head < 4; ++head) {
    const Numbers part = testing::value_of(values_of_part(c, one, head, 4, {"k", "v"}), "dv");
    for (std::size_t n = 0; n < sum.size(); ++n) {
      const bool is_normal = std::fabs(part[n]) >= kSmallestNormal;
      sum[n] += is_normal ? part[n] : 0;
      left_out += is_normal ? 0 : 1;
    }
  }
  EXPECT_GT(left_out, sum.size());
  const Fit fit = fit_of(c.backward, c.backward_values, "dv", sum, {.head_gradients = true});
  EXPECT_LE(fit.worst, 1);
  EXPECT_LE(fit.rms, 1.3);
}

}  // namespace
}  // namespace numcheck::reference
