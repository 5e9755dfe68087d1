// The error model of attention with declared roundings against emulated unfused kernels: no emulated error may exceed its
// bound, its size must be what the model predicts, and faults must still be seen.
#include "tolerance/attention_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "attention_rounding_case.hpp"
#include "op_problem.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/output_reduction.hpp"

namespace numcheck::reference {
namespace {

using testing::Fit;
using testing::fit_of;
using testing::kernel_of;
using testing::noise;
using testing::Outputs;
using testing::RoundingCase;
using testing::RoundingData;
using testing::Unfused;
using Numbers = std::vector<double>;

constexpr model::AttentionRounding kUnfused{.scores = true,
                                            .weights = true,
                                            .dropped_weights = true,
                                            .sink = true,
                                            .score_gradients = true,
                                            .head_gradients = true};

class AttentionRounding : public ::testing::TestWithParam<const char*> {};

TEST_P(AttentionRounding, of_unfused_kernels_is_bounded_and_predicted) {
  const std::vector<RoundingData> all = {{"normal"},
                                         {"large scores", 8},
                                         {"equal scores", 1e-3},
                                         {"values of one sign", 1, 5},
                                         {"small gradients", 1, 0, 1e-4},
                                         {"huge scores", 30},
                                         {"larger scores", 200}};
  for (const RoundingData& data : all) {
    for (const char* mask : {"none", "causal"}) {
      for (const int variant : {0, 1, 2, 3, 4, 5, 6, 7, 8}) {
        const RoundingCase c(kernel_of(GetParam(), mask, variant), data);
        c.each_output(c.kernel, kUnfused, [&](const std::string& port, const Fit& fit) {
          const std::string what =
              port + ", " + GetParam() + ", " + data.name + ", mask " + mask + ", variant " + std::to_string(variant);
          RecordProperty(what, std::to_string(fit.worst) + " " + std::to_string(fit.rms));
          EXPECT_LE(fit.worst, 1) << what;
          if (port == "dsoftmax_offset") {
            EXPECT_LE(fit.rms, 3) << what;  // three numbers
            return;
          }
          EXPECT_LE(fit.rms, 1.3) << what;
          EXPECT_LE(fit.most, 13) << what;
          // Where a cap is saturated, tanh is rounded to 1 without an error; subnormal gradients may be lost or not; most
          // elements of a row of dbias have less than its mean square error.
          const bool loose = data.q > 8 || variant > 6 || (variant == 1 && data.q > 1) ||
                             (variant == 6 && data.q > 1 && port == "dbias") ||
                             (c.kernel.mode == "fp16" && data.gradient < 1);
          EXPECT_GE(fit.rms, loose ? 0 : 0.3) << what << ": the prediction is too large to see a fault";
        });
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, AttentionRounding, ::testing::Values("bf16", "fp16"),
                         [](const auto& tested) { return std::string(tested.param); });

// Where x is small, tanh(x) of a stored x is rounded to x, always by the same part.
TEST_P(AttentionRounding, of_a_cap_may_be_alike_in_all_keys) {
  for (const double mean : {0.3, 0.5, 0.8, 1.2}) {
    for (const char* mask : {"none", "causal"}) {
      for (const int variant : {9, 10}) {
        const RoundingCase c(kernel_of(GetParam(), mask, variant), {"one sign", 0.3, 0, 1, mean});
        c.each_output(c.kernel, kUnfused, [&](const std::string& port, const Fit& fit) {
          const std::string what = port + ", " + GetParam() + ", mean " + std::to_string(mean) + ", mask " + mask +
                                   ", variant " + std::to_string(variant);
          EXPECT_LE(fit.worst, 1) << what;
          EXPECT_LE(fit.rms, 1.3) << what;
        });
      }
    }
  }
}

// A common error of scores cancels in a softmax of keys, but not beside a sink, whose score has no such error.
TEST_P(AttentionRounding, that_scores_share_count_beside_a_sink) {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    for (const char* softmax : {"off_by_one", "learnable"}) {
      Unfused kernel = kernel_of(GetParam(), "none", 0);
      kernel.p.softmax = softmax;
      kernel.p.scale = -0.1;
      kernel.p.softcap = 30;
      const RoundingCase c(kernel, {"alike", 0.03, -1, 1, 1.2 + 0.06 * seed, 1, 0.03});
      c.each_output(c.kernel, kUnfused, [&](const std::string& port, const Fit& fit) {
        const std::string what = port + ", " + GetParam() + ", " + softmax + ", seed " + std::to_string(seed);
        EXPECT_LE(fit.worst, 1) << what;
        EXPECT_LE(fit.rms, port == "dsoftmax_offset" ? 3 : port == "o" ? 1.3 : 2) << what;  // gradients share one draw
      });
    }
  }
}

// Inputs that are nearly the same: all errors are shared.
TEST_P(AttentionRounding, of_inputs_that_are_nearly_the_same) {
  for (const double sigma : {1.0 / 64, 1.0 / 256}) {
    for (const double mean : {-1.0, 0.99, 1.3, 2.1}) {
      for (const std::int64_t heads : {1, 4, 16}) {
        Unfused kernel = kernel_of(GetParam(), "none", 0);
        kernel.p.heads = heads;
        kernel.p.kv_heads = (heads + 7) / 8;
        kernel.p.sq = kernel.p.sk = 83;
        kernel.p.d = 8;
        kernel.p.scale = 0.3;
        const RoundingCase c(kernel, {"alike", sigma, mean, sigma, mean, 1, sigma, mean});
        c.each_output(c.kernel, kUnfused, [&](const std::string& port, const Fit& fit) {
          const std::string what = port + ", " + GetParam() + ", mean " + std::to_string(mean) + ", sigma " +
                                   std::to_string(sigma) + ", heads " + std::to_string(heads);
          RecordProperty(what, std::to_string(fit.worst) + " " + std::to_string(fit.rms));
          EXPECT_LE(fit.worst, 1) << what;
          EXPECT_LE(fit.rms, 2) << what;
        });
      }
    }
  }
}

// A kernel that recomputes the log-sum-exp: the error of a score with most of a query's weight is in all of its weights.
TEST(AttentionRecomputedStatistics, have_errors_that_are_predicted) {
  for (const double q : {1.0, 8.0}) {
    for (const char* mask : {"none", "causal"}) {
      for (const int variant : {0, 1, 2, 3, 4, 6}) {
        const RoundingCase c(kernel_of("fp32", mask, variant), {"uneven", q, 0, 1, 0, 30});
        c.each_output(c.kernel, {}, [&](const std::string& port, const Fit& fit) {
          const std::string what =
              port + ", q " + std::to_string(q) + ", mask " + mask + ", variant " + std::to_string(variant);
          EXPECT_LE(fit.worst, 1) << what;
          EXPECT_LE(fit.rms, port == "dsoftmax_offset" ? 3 : 1.3) << what;  // three numbers
          EXPECT_LE(fit.most, 13) << what;
        });
      }
    }
  }
}

op::OutputValues& output_of(op::Values& values, std::string_view port) {
  return *std::ranges::find(values.outputs, port, &op::OutputValues::port);
}

/// As if one fact were the other.
void replace_fact(op::OutputValues& output, std::size_t fact, std::size_t by) {
  std::ranges::copy(output.row_facts.at(by).span(), output.row_facts.at(fact).data());
}

// A key whose score is a small difference of large products: its error is in the log-sum-exp, and so in the weights of keys
// whose own scores are exact to a few units.
TEST(AttentionRecomputedStatistics, have_the_error_of_a_score_whose_products_cancel) {
  Unfused kernel = kernel_of("fp32", "none", 2);
  kernel.p.sk = 9;
  kernel.p.d = 8;
  RoundingCase c(kernel, {"normal"});
  const auto channels = static_cast<std::size_t>(kernel.p.d);
  Numbers &q = c.inputs["q"], &k = c.inputs["k"];
  for (std::size_t at = 0; at < q.size(); at += channels) {
    q[at + 1] = q[at];
  }
  for (std::size_t at = 0; at < k.size(); at += channels * static_cast<std::size_t>(kernel.p.sk)) {
    k[at] = 3001;
    k[at + 1] = -3001;
  }
  c.derive_again();
  const Outputs got = kernel.backward(c.inputs);
  for (const char* port : {"dq", "dk", "dv", "dbias"}) {
    const Fit fit = fit_of(c.backward, c.backward_values, port, got.find(port)->second, {});
    EXPECT_LE(fit.worst, 1) << port;
    EXPECT_LE(fit.rms, 1.3) << port;
    EXPECT_LE(fit.most, 13) << port;
  }
  op::OutputValues& dv = output_of(c.backward_values, "dv");
  const auto fact = [](tolerance::GradientFact which) { return static_cast<std::size_t>(which); };
  replace_fact(dv, fact(tolerance::GradientFact::statistic_second), fact(tolerance::GradientFact::statistic_square));
  EXPECT_GT(fit_of(c.backward, c.backward_values, "dv", got.find("dv")->second, {}).most, 13)
      << "the score says too little";
}

/// Two sequences of 17 keys, whose largest weights are mostly near 1; the second one's values are `values` times as large.
RoundingCase two_sequences(double values) {
  Unfused kernel = kernel_of("bf16", "none", 2);
  kernel.p.batches = 2;
  kernel.p.sk = 17;
  RoundingCase c(kernel, {"large scores", 16});
  Numbers& v = c.inputs["v"];
  std::for_each(v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end(), [values](double& x) { x *= values; });
  c.derive_again();
  return c;
}

// Most of a row of dbias may be one pair of one sequence, whose error of the score is that of the log-sum-exp, too, and whose
// dp is none of the other pairs'.
TEST(AttentionBiasGradient, of_small_elements_has_errors_of_its_own) {
  for (const auto& [values, fact, without] :
       {std::tuple(1.0, tolerance::kScored, 0.0F), std::tuple(512.0, tolerance::kSpreadRatio, 1.0F)}) {
    RoundingCase c = two_sequences(values);
    const Numbers got = c.kernel.backward(c.inputs).at("dbias");
    const Fit fit = fit_of(c.backward, c.backward_values, "dbias", got, kUnfused);
    EXPECT_LE(fit.worst, 1) << values;
    EXPECT_LE(fit.rms, 1.3) << values;
    EXPECT_LE(fit.most, 6) << values;
    std::ranges::fill(output_of(c.backward_values, "dbias").row_facts.at(fact).span(), without);
    EXPECT_GT(fit_of(c.backward, c.backward_values, "dbias", got, kUnfused).most, 10) << values;
  }
}

TEST(AttentionRoundingFault, is_seen_with_all_roundings_declared) {
  for (const char* mode : {"bf16", "fp16"}) {
    for (const int variant : {0, 1, 2, 3, 4}) {
      const RoundingCase c(kernel_of(mode, "causal", variant), {"normal"});
      const auto misses = [&](const Unfused& faulty, std::initializer_list<const char*> ports, const char* fault) {
        c.each_output(faulty, kUnfused, [&](const std::string& port, const Fit& fit) {
          if (std::ranges::find(ports, port) != ports.end()) {
            EXPECT_GT(fit.rms, 2) << port << ", " << fault << ", " << mode << ", variant " << variant;
          }
        });
      };
      Unfused faulty = c.kernel;
      faulty.shifted_mask = 1;
      misses(faulty, {"o", "lse", "dq", "dk", "dv"}, "one key too many");
      faulty = c.kernel;
      faulty.scale_fault = 1.1;
      misses(faulty, {"o", "lse", "dq", "dk"}, "a wrong scale");
      faulty = c.kernel;
      faulty.forgets_dot = true;
      misses(faulty, {"dq", "dk"}, "no D");
    }
  }
}

// What is not declared is not allowed.
TEST(AttentionRoundingFault, is_every_rounding_that_is_not_declared) {
  const RoundingCase c(kernel_of("bf16", "none", 0), {"normal"});
  c.each_output(c.kernel, {}, [](const std::string& port, const Fit& fit) {
    if (port == "o" || port == "lse" || port == "dq" || port == "dk") {
      EXPECT_GT(fit.rms, 1.3) << port;
    }
  });
}

/// The log-sum-exps of one head whose cap uses a tanh with errors of up to `error`, relative, that differ from pair to pair.
Numbers approximate_statistics(const RoundingCase& c, double error) {
  const op::AttentionParams& p = c.kernel.p;
  const Numbers &q = c.inputs.find("q")->second, &k = c.inputs.find("k")->second;
  const Numbers errors = noise(static_cast<std::size_t>(p.sq * p.sk), 77, error / 3);
  Numbers lse;
  for (std::int64_t i = 0; i < p.sq; ++i) {
    const op::KeyRange seen = p.visible(i, p.sq, p.sk);
    double sum = 0;
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      double t = 0;
      for (std::int64_t n = 0; n < p.d; ++n) {
        t += q[static_cast<std::size_t>(i * p.d + n)] * k[static_cast<std::size_t>(j * p.d + n)];
      }
      const double e = std::clamp(errors[static_cast<std::size_t>(i * p.sk + j)], -error, error);
      sum += std::exp(p.softcap * std::tanh(p.factor() * t / p.softcap) * (1 + e));
    }
    lse.push_back(std::log(sum));
  }
  return lse;
}

TEST(AttentionApproximateTanh, is_predicted) {
  for (const double cap : {2.0, 30.0}) {
    for (const char* mask : {"none", "causal"}) {
      Unfused kernel = kernel_of("bf16", mask, 0);
      kernel.p.softcap = cap;
      const RoundingCase c(kernel, {"normal"});
      const Numbers lse = approximate_statistics(c, tolerance::kTanhError);
      const Fit fit = fit_of(c.forward, c.forward_values, "lse", lse, {.approximate_tanh = true});
      testing::expect_predicted(fit, "cap " + std::to_string(cap) + ", mask " + mask);
      EXPECT_GT(fit_of(c.forward, c.forward_values, "lse", lse, {}).rms, 1.5 * fit.rms) << cap << ' ' << mask;
      const Numbers hardware = approximate_statistics(c, 0x1p-11);  // tanh.approx.f32 as PTX documents it
      EXPECT_GT(fit_of(c.forward, c.forward_values, "lse", hardware, {.approximate_tanh = true}).rms, 2)
          << cap << ' ' << mask;
    }
  }
}

// The slope of a saturated cap is 1 - tanh^2: small, but with the error of a tanh near 1.
TEST(AttentionBiasGradient, of_a_saturated_cap_has_the_error_of_its_slope) {
  Unfused kernel = kernel_of("fp32", "none", 1);
  kernel.p.d = 1;
  kernel.p.softcap = 0.5;
  const RoundingCase c(kernel, {"large scores", 8});
  const op::OutputValues& dbias = testing::output_named(c.backward_values, "dbias");
  const core::Buffer<float>& saturation = dbias.row_facts.at(tolerance::kSaturation);
  constexpr double kTwoUlps = 4 * 0x1p-24;
  Numbers got = testing::value_of(c.backward_values, "dbias");
  for (std::size_t n = 0; n < got.size(); ++n) {
    got[n] += (n % 2 == 0 ? 2 : -2) * kTwoUlps * static_cast<double>(saturation[n]);
  }
  const Fit fit = fit_of(c.backward, c.backward_values, "dbias", got, {});
  EXPECT_LE(fit.worst, 1);
  EXPECT_LE(fit.rms, 2);
}

}  // namespace
}  // namespace numcheck::reference
