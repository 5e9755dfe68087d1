// The error model of attention against emulated kernels: blocked, with an online softmax, in the formats of each mode.
// No emulated error may exceed its bound, and its size must be what the model predicts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "op/attention_fwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_max_model.hpp"
#include "tolerance/attention_model.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::noise;
using testing::Problem;
using Numbers = std::vector<double>;

/// One way to compute attention of a single head, layout bhsd, no lengths.
struct Kernel {
  op::AttentionParams p;
  core::Dtype format = core::Dtype::bf16;  ///< of the tensors
  bool tensor_cores = true;                ///< weights are rounded to the format before they are multiplied
  std::size_t block = 64;                  ///< keys of a step
  bool base_2 = true;                      ///< exp2 of scores that are scaled by log2 e
  bool scale_last = false;                 ///< outputs are divided by 1 - dropout, not weights

  [[nodiscard]] float operand(double x) const {
    const bool tf32 = tensor_cores && format == core::Dtype::fp32;
    return static_cast<float>(core::round_to(x, tf32 ? core::Dtype::tf32 : format));
  }

  struct Result {
    Numbers o, lse, max_logit;
  };

  [[nodiscard]] Result run(const Inputs& in) const {
    const Numbers &q = in.find("q")->second, &k = in.find("k")->second, &v = in.find("v")->second;
    const Numbers mask = p.has_dropout() ? in.find("dropout_mask")->second : Numbers();
    Result result{Numbers(static_cast<std::size_t>(p.sq * p.value_channels())), Numbers(static_cast<std::size_t>(p.sq)),
                  Numbers(static_cast<std::size_t>(p.sq))};
    for (std::int64_t i = 0; i < p.sq; ++i) {
      query(i, q, k, v, mask, result);
    }
    return result;
  }

 private:
  [[nodiscard]] float score(std::int64_t i, std::int64_t j, const Numbers& q, const Numbers& k) const {
    float sum = 0;
    for (std::int64_t c = 0; c < p.d; ++c) {
      sum = std::fma(operand(q[static_cast<std::size_t>(i * p.d + c)]),
                     operand(k[static_cast<std::size_t>(j * p.d + c)]), sum);
    }
    float scaled = sum * static_cast<float>(p.factor());
    if (p.softcap != 0) {
      const auto cap = static_cast<float>(p.softcap);
      scaled = cap * std::tanh(scaled / cap);
    }
    return base_2 ? scaled * 1.44269504F : scaled;
  }

  void query(std::int64_t i, const Numbers& q, const Numbers& k, const Numbers& v, const Numbers& mask,
             Result& out) const {
    const auto scale = static_cast<float>(p.keep_scale());
    const op::KeyRange seen = p.visible(i, p.sq, p.sk);
    const auto width = static_cast<std::size_t>(p.value_channels());
    std::vector<float> sums(width);
    float largest = -INFINITY, total = 0;
    for (std::int64_t begin = seen.begin; begin < seen.end; begin += static_cast<std::int64_t>(block)) {
      const std::int64_t end = std::min(begin + static_cast<std::int64_t>(block), seen.end);
      std::vector<float> scores;
      for (std::int64_t j = begin; j < end; ++j) {
        scores.push_back(score(i, j, q, k));
      }
      const float before = largest;
      largest = std::max(largest, *std::ranges::max_element(scores));
      const float shrink = power(before - largest);
      total *= shrink;
      std::ranges::for_each(sums, [shrink](float& x) { x *= shrink; });
      for (std::int64_t j = begin; j < end; ++j) {
        float weight = power(scores[static_cast<std::size_t>(j - begin)] - largest);
        total += weight;
        if (!mask.empty()) {
          weight *= static_cast<float>(mask[static_cast<std::size_t>(i * p.sk + j)]) * (scale_last ? 1.0F : scale);
        }
        for (std::size_t c = 0; c < width; ++c) {
          sums[c] = std::fma(operand(static_cast<double>(weight)), operand(v[static_cast<std::size_t>(j) * width + c]),
                             sums[c]);
        }
      }
    }
    for (std::size_t c = 0; c < width; ++c) {
      out.o[static_cast<std::size_t>(i) * width + c] =
          static_cast<double>(sums[c] / total * (scale_last ? scale : 1.0F));
    }
    const float top = base_2 ? largest * 0.693147181F : largest;
    out.max_logit[static_cast<std::size_t>(i)] = static_cast<double>(top);
    out.lse[static_cast<std::size_t>(i)] = static_cast<double>(top + std::log(total));
  }

  [[nodiscard]] float power(float x) const { return base_2 ? std::exp2(x) : std::exp(x); }
};

struct Data {
  std::string name;
  double q = 1, v_mean = 0;
  double expected = 1;  ///< part of the prediction: a weight of 1 is not rounded, but kernels need not scale to that
};

struct Fit {
  double worst = 0;  ///< of |e| / B
  double rms = 0;    ///< of e / sqrt V
};

Fit fit_of(const op::Values& values, std::string_view port, const Numbers& got, const model::ModelRequest& request) {
  const Numbers wanted = testing::value_of(values, port);
  std::vector<float> bound(wanted.size()), deviation(wanted.size());
  if (port == "max_logit") {
    tolerance::max_logit_error(request, values, bound, deviation);
  } else {
    tolerance::attention_error(request, values, port, bound, deviation);
  }
  Fit fit;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    const double e = got[n] - wanted[n];
    fit.worst = std::max(fit.worst, std::fabs(e) / static_cast<double>(bound[n]));
    const double z = e / static_cast<double>(deviation[n]);
    fit.rms += z * z / static_cast<double>(wanted.size());
  }
  fit.rms = std::sqrt(fit.rms);
  return fit;
}

void check(const Kernel& kernel, const char* mode, const Data& data, double least_rms) {
  const op::AttentionParams& p = kernel.p;
  const auto draw = [&](std::int64_t count, unsigned seed, double sigma, double mean) {
    Numbers x = noise(static_cast<std::size_t>(count), seed, sigma, mean);
    std::ranges::transform(x, x.begin(), [&](double value) { return core::round_to(value, kernel.format); });
    return x;
  };
  Inputs inputs;
  inputs["q"] = draw(p.sq * p.d, 1, data.q, 0);
  inputs["k"] = draw(p.sk * p.d, 2, 1, 0);
  inputs["v"] = draw(p.sk * p.value_channels(), 3, 1, data.v_mean);
  const Problem problem{&op::attention_fwd(), attention_fwd_reference(), op::to_params(p), mode};
  if (p.has_dropout()) {
    inputs["dropout_mask"] = testing::derived(problem, inputs, "dropout_mask", draw(p.sq * p.sk, 4, 1, 0));
  }
  const op::Values values = testing::evaluate(problem, inputs);
  model::ModelRequest request;
  request.params = &problem.params;
  request.mode = op::find_mode(mode);
  request.expected = std::string(mode) == "fp32"   ? model::PrecisionClass::fp32
                     : std::string(mode) == "tf32" ? model::PrecisionClass::tf32_rne
                                                   : model::PrecisionClass::native;
  const Kernel::Result got = kernel.run(inputs);
  const std::string what = std::string(mode) + ", " + data.name + ", mask " + p.mask + ", d " + std::to_string(p.d) +
                           ", keys " + std::to_string(p.sk) + (kernel.base_2 ? ", base 2" : "") +
                           (p.has_dropout() ? ", dropout " + std::to_string(p.dropout) : "");
  const Fit o = fit_of(values, "o", got.o, request), lse = fit_of(values, "lse", got.lse, request);
  EXPECT_LE(o.worst, 1) << what;
  const Fit top = fit_of(values, "max_logit", got.max_logit, request);
  EXPECT_LE(lse.worst, 1) << what;
  EXPECT_LE(top.worst, 1) << what;
  EXPECT_LE(top.rms, 1.4) << what;  // 40 numbers
  EXPECT_GE(top.rms, 0.05) << what;
  EXPECT_LE(o.rms, 1.3) << what;
  EXPECT_GE(o.rms, data.expected * least_rms) << what << ": the prediction is too large to see a fault";
  EXPECT_LE(lse.rms, 1.3) << what;
  ::testing::Test::RecordProperty(what, std::to_string(o.worst) + " " + std::to_string(o.rms) + " " +
                                            std::to_string(lse.worst) + " " + std::to_string(lse.rms) + " " +
                                            std::to_string(top.worst) + " " + std::to_string(top.rms));
}

/// Of inputs that all have this mean and deviation.
Fit fit_around(const Kernel& kernel, const char* mode, double sigma, double mean, const char* port) {
  const op::AttentionParams& p = kernel.p;
  const auto draw = [&](std::int64_t count, unsigned seed) {
    Numbers x = noise(static_cast<std::size_t>(count), seed, sigma, mean);
    std::ranges::transform(x, x.begin(), [&](double value) { return core::round_to(value, kernel.format); });
    return x;
  };
  const Inputs inputs = {
      {"q", draw(p.sq * p.d, 1)}, {"k", draw(p.sk * p.d, 2)}, {"v", draw(p.sk * p.value_channels(), 3)}};
  const Problem problem{&op::attention_fwd(), attention_fwd_reference(), op::to_params(p), mode};
  model::ModelRequest request;
  request.params = &problem.params;
  request.mode = op::find_mode(mode);
  request.expected = std::string(mode) == "fp32" ? model::PrecisionClass::fp32 : model::PrecisionClass::tf32_rne;
  if (sigma < 0x1p-8 * mean) {  // as data::large_mean_pattern has it
    request.first_pattern.order = request.second_pattern.order = data::Order::structured;
  }
  const Kernel::Result got = kernel.run(inputs);
  const Numbers& of_port = port == std::string("o") ? got.o : port == std::string("lse") ? got.lse : got.max_logit;
  return fit_of(testing::evaluate(problem, inputs), port, of_port, request);
}

class AttentionError : public ::testing::TestWithParam<const char*> {};

TEST_P(AttentionError, of_blocked_kernels_is_bounded_and_predicted) {
  const std::string mode = GetParam();
  const std::vector<Data> all = {
      {"normal", 1, 0}, {"large scores", 12, 0, 0.5}, {"equal scores", 1e-3, 0}, {"values of one sign", 1, 5}};
  for (const Data& data : all) {
    for (const char* mask : {"none", "causal"}) {
      for (const int variant : {0, 1, 2, 3, 4}) {
        Kernel kernel;
        kernel.p.sq = 40;
        kernel.p.sk = mask == std::string("none") ? 333 : 40;
        kernel.p.d = 64;
        kernel.p.mask = mask;
        kernel.p.layout = "bhsd";
        kernel.format = op::find_mode(mode)->first;
        kernel.tensor_cores = mode != "fp32";
        kernel.base_2 = variant % 2 == 0;
        kernel.scale_last = variant == 3;
        kernel.p.dropout = variant == 2 ? 0.1 : variant == 3 ? 0.5 : variant == 4 ? 0.9 : 0;
        kernel.p.max_logit = true;
        check(kernel, mode.c_str(), data, mode == "bf16" || mode == "fp16" ? 0.4 : 0.05);
      }
    }
  }
}

// The first half of the channels of a key is positive, the other negative: partial sums are far larger than scores.
TEST(AttentionMaxError, of_structured_scores_is_predicted) {
  Kernel kernel;
  kernel.p.sq = 400;
  kernel.p.sk = 1;
  kernel.p.d = 64;
  kernel.p.layout = "bhsd";
  kernel.p.max_logit = true;
  kernel.format = core::Dtype::fp32;
  kernel.tensor_cores = kernel.base_2 = false;
  const auto magnitudes = [](std::int64_t count, unsigned seed) {
    Numbers x = noise(static_cast<std::size_t>(count), seed, 0.1, 0.75);
    std::ranges::transform(x, x.begin(), [](double value) { return core::round_to(value, core::Dtype::fp32); });
    return x;
  };
  Inputs inputs = {{"q", magnitudes(kernel.p.sq * 64, 1)}, {"k", magnitudes(64, 2)}, {"v", magnitudes(64, 3)}};
  std::ranges::for_each(inputs["k"].begin() + 32, inputs["k"].end(), [](double& x) { x = -x; });
  const Problem problem{&op::attention_fwd(), attention_fwd_reference(), op::to_params(kernel.p), "fp32"};
  model::ModelRequest request;
  request.params = &problem.params;
  request.mode = op::find_mode("fp32");
  request.expected = model::PrecisionClass::fp32;
  request.first_pattern.order = request.second_pattern.order = data::Order::structured;
  const Fit fit = fit_of(testing::evaluate(problem, inputs), "max_logit", kernel.run(inputs).max_logit, request);
  EXPECT_LE(fit.worst, 1);
  EXPECT_LE(fit.rms, 1.3);
  EXPECT_GE(fit.rms, 0.25) << "the prediction is too large to see a fault";
}

// In TF32 the rounding of a query moves all of its scores alike where keys have a mean: lse does not average it.
TEST(AttentionStatisticError, of_operands_that_all_scores_share_is_predicted) {
  Kernel kernel;
  kernel.p.sq = 40;
  kernel.p.sk = 1000;
  kernel.p.d = 64;
  kernel.p.layout = "bhsd";
  kernel.format = core::Dtype::fp32;
  const Fit fit = fit_around(kernel, "tf32", 0.2, 1, "lse");
  EXPECT_LE(fit.rms, 1.3);
  EXPECT_GE(fit.rms, 0.5) << "the prediction is too large to see a fault";
}

// Numbers that differ by less than an ulp round alike, in sums and to TF32.
TEST(AttentionAlike, errors_of_numbers_that_round_alike_is_predicted) {
  for (const char* mode : {"fp32", "tf32"}) {
    for (const double cap : {0.0, 1.0}) {
      Kernel kernel;
      kernel.p.sq = 40;
      kernel.p.sk = 300;
      kernel.p.d = 97;
      kernel.p.layout = "bhsd";
      kernel.format = core::Dtype::fp32;
      kernel.tensor_cores = mode == std::string("tf32");
      kernel.p.softcap = cap;
      kernel.p.max_logit = true;
      for (const char* port : {"o", "lse", "max_logit"}) {
        if (port == std::string("max_logit") && !kernel.tensor_cores) {
          continue;
        }
        const Fit fit = fit_around(kernel, mode, 1e-8, 0.1, port);
        EXPECT_LE(fit.worst, 1) << mode << " " << port << " " << cap;
        EXPECT_LE(fit.rms, 1.3) << mode << " " << port << " " << cap;
      }
    }
  }
}

// A weight of 2^-25 is lost in FP16, and what it has of a value, whatever the value's other channels are.
TEST(AttentionVariance, of_a_channel_does_not_depend_on_infinities_in_others) {
  op::AttentionParams p;
  p.sq = p.d = 1;
  p.sk = p.dv = 2;
  p.scale = 1;
  p.layout = "bhsd";
  const Problem problem{&op::attention_fwd(), attention_fwd_reference(), op::to_params(p), "fp16"};
  model::ModelRequest request;
  request.params = &problem.params;
  request.mode = op::find_mode("fp16");
  const auto deviation_with = [&](double other) {
    const Inputs inputs = {{"q", {1}}, {"k", {-17.5, 0}}, {"v", {1497, other, 0.005, 0.5}}};
    std::vector<float> bound(2), deviation(2);
    tolerance::attention_error(request, testing::evaluate(problem, inputs), "o", bound, deviation);
    return deviation[0];
  };
  EXPECT_GT(deviation_with(0), 1e-5F);
  EXPECT_EQ(deviation_with(std::numeric_limits<double>::infinity()), deviation_with(0));
}

INSTANTIATE_TEST_SUITE_P(Modes, AttentionError, ::testing::Values("bf16", "fp16", "tf32", "fp32"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace numcheck::reference
