// The error model of attention with declared roundings against emulated unfused kernels: no emulated error may exceed its
// bound, its size must be what the model predicts, and faults must still be seen.
#include "tolerance/attention_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "attention_unfused_kernel.hpp"
#include "core/codec.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_model.hpp"
#include "tolerance/output_reduction.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::noise;
using testing::Outputs;
using testing::Problem;
using testing::Unfused;
using Numbers = std::vector<double>;

constexpr model::AttentionRounding kUnfused{.scores = true,
                                            .weights = true,
                                            .dropped_weights = true,
                                            .sink = true,
                                            .score_gradients = true,
                                            .head_gradients = true};

struct Data {
  std::string name;
  double q = 1, v_mean = 0, gradient = 1;
};

struct Fit {
  double worst = 0;  ///< of |e| / B
  double rms = 0;    ///< of e / sqrt V
};

Inputs inputs_of(const Problem& problem, core::Dtype format, const Data& data) {
  Inputs inputs;
  for (const op::Port& port : problem.ports()) {
    if (port.role != op::Role::input) {
      continue;
    }
    const auto size = static_cast<std::size_t>(port.elements());
    const double sigma = port.name == "q" ? data.q : port.name == "do" ? data.gradient : 1;
    Numbers x = noise(size, static_cast<unsigned>(inputs.size()) + 1, sigma, port.name == "v" ? data.v_mean : 0);
    if (port.fill == op::Fill::derived) {
      x = testing::derived(problem, inputs, port.name, Numbers(size));
    }
    const bool single = port.name == "lse" || port.name == "softmax_offset";
    std::ranges::transform(x, x.begin(),
                           [&](double y) { return core::round_to(y, single ? core::Dtype::fp32 : format); });
    inputs[std::string(port.name)] = std::move(x);
  }
  return inputs;
}

Fit fit_of(const Problem& problem, const op::Values& values, std::string_view port, const Numbers& got,
           const model::AttentionRounding& rounding) {
  model::ModelRequest request;
  request.params = &problem.params;
  request.mode = op::find_mode(problem.mode);
  request.expected = problem.mode == "fp32" ? model::PrecisionClass::fp32 : model::PrecisionClass::native;
  request.rounding = rounding;
  const Numbers wanted = testing::value_of(values, port);
  std::vector<float> bound(wanted.size()), variance(wanted.size());
  if (problem.op == &op::attention_fwd()) {
    tolerance::attention_error(request, values, port, bound, variance);
  } else {
    tolerance::attention_bwd_error(request, values, port, bound, variance);
  }
  Fit fit;
  std::size_t count = 0;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    const double e = got[n] - wanted[n], b = static_cast<double>(bound[n]);
    if (e == 0 && (b == 0 || variance[n] == 0)) {
      continue;
    }
    fit.worst = std::max(fit.worst, std::fabs(e) / b);
    fit.rms += e * e / std::min(static_cast<double>(variance[n]), b * b);
    ++count;
  }
  fit.rms = std::sqrt(fit.rms / static_cast<double>(std::max<std::size_t>(count, 1)));
  return fit;
}

/// A case of both directions with its references.
struct Case {
  Unfused kernel;
  Problem forward, backward;
  Inputs inputs;
  op::Values forward_values, backward_values;

  Case(Unfused unfused, const Data& data)
      : kernel(std::move(unfused)),
        forward{&op::attention_fwd(), attention_fwd_reference(), op::to_params(kernel.p), kernel.mode},
        backward{&op::attention_bwd(), attention_bwd_reference(), op::to_params(kernel.p), kernel.mode},
        inputs(inputs_of(backward, kernel.format(), data)),
        forward_values(testing::evaluate(forward, inputs)),
        backward_values(testing::evaluate(backward, inputs)) {}

  /// Calls body(port, fit) for every output of the kernel.
  template <class Body>
  void each_output(const Unfused& unfused, const model::AttentionRounding& rounding, const Body& body) const {
    for (const auto& [port, numbers] : unfused.forward(inputs)) {
      body(port, fit_of(forward, forward_values, port, numbers, rounding));
    }
    for (const auto& [port, numbers] : unfused.backward(inputs)) {
      if (!numbers.empty()) {
        body(port, fit_of(backward, backward_values, port, numbers, rounding));
      }
    }
  }
};

/// What a variant needs besides its mask.
Unfused kernel_of(const std::string& mode, const std::string& mask, int variant) {
  Unfused kernel;
  kernel.mode = mode;
  kernel.p.sq = 40;
  kernel.p.sk = mask == "none" ? 150 : 40;
  kernel.p.d = 32;
  kernel.p.mask = mask;
  kernel.p.layout = "bhsd";
  if (variant == 1) {
    kernel.p.softcap = 2;
    kernel.p.bias = "pre_scale";
  } else if (variant == 2) {
    kernel.p.bias = "post_scale";
    kernel.p.softmax = "learnable";
    kernel.p.heads = 3;
  } else if (variant == 3) {
    kernel.p.heads = 4;
    kernel.p.kv_heads = 2;
    kernel.p.dv = 24;
    kernel.p.softcap = 30;
  } else if (variant == 4) {
    kernel.p.bias = "alibi";
    kernel.p.heads = 2;
    kernel.p.softmax = "off_by_one";
  } else if (variant >= 5) {
    kernel.p.dropout = variant == 5 ? 0.1 : 0.6;
    kernel.p.heads = 2;
    kernel.p.bias = variant == 5 ? "none" : "post_scale";
  }
  return kernel;
}

class AttentionRounding : public ::testing::TestWithParam<const char*> {};

TEST_P(AttentionRounding, of_unfused_kernels_is_bounded_and_predicted) {
  const std::vector<Data> all = {{"normal"},
                                 {"large scores", 8},
                                 {"equal scores", 1e-3},
                                 {"values of one sign", 1, 5},
                                 {"small gradients", 1, 0, 1e-4}};
  for (const Data& data : all) {
    for (const char* mask : {"none", "causal"}) {
      for (const int variant : {0, 1, 2, 3, 4, 5, 6}) {
        const Case c(kernel_of(GetParam(), mask, variant), data);
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
          // Where a cap is saturated, tanh is rounded to 1 without an error; subnormal gradients may be lost or not; most
          // elements of a row of dbias have less than its mean square error.
          const bool loose = (variant == 1 && data.q > 1) || (variant == 6 && data.q > 1 && port == "dbias") ||
                             (c.kernel.mode == "fp16" && data.gradient < 1);
          EXPECT_GE(fit.rms, loose ? 0 : 0.3) << what << ": the prediction is too large to see a fault";
        });
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, AttentionRounding, ::testing::Values("bf16", "fp16"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(AttentionRoundingFault, is_seen_with_all_roundings_declared) {
  for (const char* mode : {"bf16", "fp16"}) {
    for (const int variant : {0, 1, 2, 3, 4}) {
      const Case c(kernel_of(mode, "causal", variant), {"normal"});
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
  const Case c(kernel_of("bf16", "none", 0), {"normal"});
  c.each_output(c.kernel, {}, [](const std::string& port, const Fit& fit) {
    if (port == "o" || port == "lse" || port == "dq" || port == "dk") {
      EXPECT_GT(fit.rms, 1.3) << port;
    }
  });
}

/// Part `number` of `of` equal ones along the outermost dimension.
Numbers part_of(const Numbers& all, std::size_t number, std::size_t of) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(all.size() / of * number);
  return {begin, begin + static_cast<std::ptrdiff_t>(all.size() / of)};
}

/// Gradients of one sequence or head of a case in layout bhsd, whose tensors but those named in `whole` are cut into parts.
op::Values values_of_part(const Case& c, const op::AttentionParams& p, std::size_t number, std::size_t of,
                          std::initializer_list<std::string_view> whole) {
  Inputs inputs;
  for (const auto& [port, numbers] : c.inputs) {
    inputs[port] = std::ranges::find(whole, port) != whole.end() ? numbers : part_of(numbers, number, of);
  }
  return testing::evaluate({&op::attention_bwd(), attention_bwd_reference(), op::to_params(p), c.kernel.mode}, inputs);
}

TEST(AttentionRoundedSums, of_sequences_are_predicted) {
  for (const char* mode : {"bf16", "fp16"}) {
    for (const std::int64_t sequences : {2, 3, 9}) {
      Unfused kernel = kernel_of(mode, "none", 2);
      kernel.p.batches = sequences;
      const Case c(kernel, {"normal"});
      op::AttentionParams one = kernel.p;
      one.batches = 1;
      Numbers sum(static_cast<std::size_t>(one.heads * one.sq * one.sk));
      for (std::int64_t b = 0; b < sequences; ++b) {
        const op::Values values = values_of_part(c, one, static_cast<std::size_t>(b),
                                                 static_cast<std::size_t>(sequences), {"bias", "softmax_offset"});
        const Numbers part = testing::value_of(values, "dbias");
        for (std::size_t n = 0; n < sum.size(); ++n) {
          sum[n] = (b == 0 ? 0.0 : core::round_to(sum[n], kernel.format())) + part[n];
        }
      }
      const Fit fit = fit_of(c.backward, c.backward_values, "dbias", sum, {.bias_sum = true});
      EXPECT_LE(fit.worst, 1) << mode << ' ' << sequences;
      EXPECT_LE(fit.rms, 1.3) << mode << ' ' << sequences;
      EXPECT_GE(fit.rms, 0.3) << mode << ' ' << sequences;
      EXPECT_GT(fit_of(c.backward, c.backward_values, "dbias", sum, {}).rms, 5) << mode << ' ' << sequences;
    }
  }
}

TEST(AttentionRoundedSums, of_scaled_parts_are_predicted) {
  for (const char* mode : {"bf16", "fp16"}) {
    for (const std::int64_t sequences : {1, 2, 9}) {
      for (const double scale : {0.3, -1.7, 1e-4}) {
        Unfused kernel = kernel_of(mode, "none", 2);
        kernel.p.batches = sequences;
        kernel.p.scale = scale;
        const Case c(kernel, {"normal"});
        op::AttentionParams one = kernel.p;
        one.batches = 1;
        Numbers sum(static_cast<std::size_t>(one.heads * one.sq * one.sk));
        for (std::int64_t b = 0; b < sequences; ++b) {
          const Numbers part =
              testing::value_of(values_of_part(c, one, static_cast<std::size_t>(b), static_cast<std::size_t>(sequences),
                                               {"bias", "softmax_offset"}),
                                "dbias");
          for (std::size_t n = 0; n < sum.size(); ++n) {
            sum[n] += core::round_to(part[n] * kernel.p.factor(), kernel.format()) / kernel.p.factor();
          }
        }
        const Fit fit = fit_of(c.backward, c.backward_values, "dbias", sum, {.scaled_bias = true});
        EXPECT_LE(fit.worst, 1) << mode << ' ' << sequences << ' ' << scale;
        EXPECT_LE(fit.rms, 1.3) << mode << ' ' << sequences << ' ' << scale;
        EXPECT_GE(fit.rms, 0.3) << mode << ' ' << sequences << ' ' << scale;
        EXPECT_GT(fit_of(c.backward, c.backward_values, "dbias", sum, {}).rms, 5) << mode << ' ' << sequences;
      }
    }
  }
}

TEST(AttentionRoundedSums, of_heads_are_predicted) {
  for (const char* mode : {"bf16", "fp16"}) {
    Unfused kernel = kernel_of(mode, "causal", 0);
    kernel.p.heads = 4;
    kernel.p.kv_heads = 1;
    const Case c(kernel, {"normal"});
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
      EXPECT_LE(fit.worst, 1) << port << ' ' << mode;
      EXPECT_LE(fit.rms, 1.3) << port << ' ' << mode;
      EXPECT_GE(fit.rms, 0.3) << port << ' ' << mode;
      EXPECT_LT(fit.rms, fit_of(c.backward, c.backward_values, port, sum, {}).rms) << port << ' ' << mode;
    }
  }
}

/// The log-sum-exps of one head whose cap uses a tanh with errors of up to `error`, relative, that differ from pair to pair.
Numbers approximate_statistics(const Case& c, double error) {
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
      const Case c(kernel, {"normal"});
      const Numbers lse = approximate_statistics(c, tolerance::kTanhError);
      const Fit fit = fit_of(c.forward, c.forward_values, "lse", lse, {.approximate_tanh = true});
      EXPECT_LE(fit.worst, 1) << cap << ' ' << mask;
      EXPECT_LE(fit.rms, 1.3) << cap << ' ' << mask;
      EXPECT_GE(fit.rms, 0.3) << cap << ' ' << mask;
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
  const Case c(kernel, {"large scores", 8});
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
