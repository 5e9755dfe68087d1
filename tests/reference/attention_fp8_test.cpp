// FP8 attention: what scales mean, and its error model against emulated kernels that quantise weights in the two ways that
// are in use, relative to the largest score so far and normalised.
#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "model/product.hpp"
#include "model/schedule.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_model.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::noise;
using testing::Problem;
using Numbers = std::vector<double>;
using Floats = std::vector<float>;

constexpr core::Dtype kFormat = core::Dtype::fp8_e4m3;
constexpr std::string_view kMode = "fp8_hybrid";

op::AttentionParams single_head(std::int64_t queries, std::int64_t keys, std::int64_t d) {
  op::AttentionParams p;
  p.sq = queries;
  p.sk = keys;
  p.d = d;
  p.layout = "bhsd";
  return p;
}

Problem forward(const op::AttentionParams& p) {
  return {&op::attention_fwd(), attention_fwd_reference(), op::to_params(p), kMode};
}

/// Codes of normal numbers.
Numbers codes(std::int64_t count, unsigned seed, double sigma, double mean = 0) {
  Numbers x = noise(static_cast<std::size_t>(count), seed, sigma, mean);
  std::ranges::transform(x, x.begin(), [](double value) { return core::round_to(value, kFormat); });
  return x;
}

void add_weight_scales(const Problem& problem, Inputs& inputs) {
  for (const char* port : {"s_scale", "s_scale_inv"}) {
    inputs[port] = testing::derived(problem, inputs, port, {0});
  }
}

TEST(Fp8Attention, weight_scale_is_that_of_the_largest_possible_weight) {
  const Problem problem = forward(single_head(1, 2, 1));
  Inputs inputs;
  add_weight_scales(problem, inputs);
  EXPECT_EQ(inputs["s_scale"][0], 448);  // E4M3's largest number over the largest weight, 1
  EXPECT_EQ(inputs["s_scale_inv"][0], static_cast<double>(1.0F / 448.0F));
}

// Two keys with scores ln 3 apart weigh 3/4 and 1/4.
TEST(Fp8Attention, values_are_codes_times_inverse_scales) {
  op::AttentionParams p = single_head(1, 2, 1);
  p.scale = 1;
  const Problem problem = forward(p);
  Inputs inputs;
  inputs["q"] = {2};
  inputs["k"] = {1, -1};
  inputs["v"] = {8, 16};
  inputs["q_scale_inv"] = {std::log(3.0) / 8};
  inputs["k_scale_inv"] = {2};
  inputs["v_scale_inv"] = {0.5};
  add_weight_scales(problem, inputs);
  const op::Values values = testing::evaluate(problem, inputs);
  EXPECT_NEAR(testing::value_of(values, "o")[0], 0.75 * 4 + 0.25 * 8, 1e-12);
  EXPECT_NEAR(testing::value_of(values, "s_amax")[0], 0.75, 1e-12);
  EXPECT_NEAR(testing::value_of(values, "lse")[0], std::log(std::sqrt(3.0) + 1 / std::sqrt(3.0)), 1e-12);
}

TEST(Fp8Attention, gradients_of_scaled_products_have_the_scale_of_their_largest) {
  op::AttentionParams p = single_head(3, 5, 4);
  const Problem problem{&op::attention_bwd(), attention_bwd_reference(), op::to_params(p), kMode};
  Inputs inputs;
  for (const op::Port& port : problem.ports()) {
    if (port.role != op::Role::input) {
      continue;
    }
    inputs[std::string(port.name)] =
        !port.is_generated()
            ? testing::derived(problem, inputs, port.name, Numbers(static_cast<std::size_t>(port.elements())))
            : codes(port.elements(), static_cast<unsigned>(inputs.size()), 1);
  }
  const double largest = testing::value_of(testing::evaluate(problem, inputs), "dp_amax")[0];
  EXPECT_GT(largest, 0);
  EXPECT_NEAR(inputs["dp_scale"][0], 57344 / largest, 1e-6 * inputs["dp_scale"][0]);
  // The gradient of the first query, by hand: dq = sum_j dp_j k_j with dp = scale p (do v^T - D).
  double sum = 0, amax = 0;
  for (std::size_t j = 0; j < 5; ++j) {
    double score = 0, change = 0, dot = 0;
    for (std::size_t c = 0; c < 4; ++c) {
      score += inputs["q"][c] * inputs["k"][4 * j + c];
      change += inputs["do"][c] * inputs["v"][4 * j + c];
      dot += inputs["do"][c] * inputs["o"][c];
    }
    const double dp = 0.5 * std::exp(0.5 * score - inputs["lse"][0]) * (change - dot);
    sum += dp * inputs["k"][4 * j];
    amax = std::max(amax, std::fabs(dp));
  }
  EXPECT_NEAR(testing::value_of(testing::evaluate(problem, inputs), "dq")[0], sum, 1e-9);
  EXPECT_LE(amax, largest * (1 + 1e-12));
}

/// One way to compute a single head.
struct Kernel {
  op::AttentionParams p;
  bool normalised = false;  ///< weights are exp(s - lse) when they are quantised
  std::size_t block = 64;   ///< keys of a step, if not

  [[nodiscard]] static Floats product(const Floats& a, const Floats& b, std::int64_t m, std::int64_t n,
                                      std::int64_t k) {
    Floats out(static_cast<std::size_t>(m * n));
    const int emin = core::dtype_info(kFormat).emin;
    model::simulate_product(model::gemm_schedule(90, *op::find_mode(kMode), false, false), {a, b, m, n, k, emin, emin},
                            out);
    return out;
  }
  [[nodiscard]] static float quantised(float weight) {
    return static_cast<float>(core::round_to(static_cast<double>(std::min(weight * 448.0F, 448.0F)), kFormat));
  }

  [[nodiscard]] static Floats floats(const Inputs& in, const char* port) {
    const Numbers& from = in.find(port)->second;
    return Floats(from.begin(), from.end());
  }

  /// sq x sk
  [[nodiscard]] Floats scores_of(const Inputs& in) const {
    const auto d = static_cast<std::size_t>(p.d), keys = static_cast<std::size_t>(p.sk);
    const Floats k = floats(in, "k");
    Floats turned(k.size());
    for (std::size_t j = 0; j < keys; ++j) {
      for (std::size_t c = 0; c < d; ++c) {
        turned[c * keys + j] = k[j * d + c];
      }
    }
    const float factor = static_cast<float>(p.factor()) * floats(in, "q_scale_inv")[0] * floats(in, "k_scale_inv")[0];
    Floats scores = product(floats(in, "q"), turned, p.sq, p.sk, p.d);
    std::ranges::for_each(scores, [factor](float& x) { x *= factor; });
    return scores;
  }

  /// Log-sum-exps of the scores that each query sees.
  [[nodiscard]] Numbers statistics(const Inputs& in) const {
    const Floats scores = scores_of(in);
    Numbers out;
    for (std::int64_t i = 0; i < p.sq; ++i) {
      const op::KeyRange seen = p.visible(i, p.sq, p.sk);
      double sum = 0;
      for (std::int64_t j = seen.begin; j < seen.end; ++j) {
        sum += std::exp(static_cast<double>(scores[static_cast<std::size_t>(i * p.sk + j)]));
      }
      out.push_back(std::log(sum));
    }
    return out;
  }

  [[nodiscard]] Numbers run(const Inputs& in) const {
    const auto keys = static_cast<std::size_t>(p.sk);
    const Floats v = floats(in, "v"), scores = scores_of(in);
    const float after = floats(in, "s_scale_inv")[0] * floats(in, "v_scale_inv")[0];
    Numbers out;
    for (std::int64_t i = 0; i < p.sq; ++i) {
      const op::KeyRange seen = p.visible(i, p.sq, p.sk);
      const auto row = std::span(scores).subspan(static_cast<std::size_t>(i) * keys, keys);
      for (const float x : normalised ? whole(row, seen, v) : online(row, seen, v)) {
        out.push_back(static_cast<double>(x * after));
      }
    }
    return out;
  }

 private:
  [[nodiscard]] Floats whole(std::span<const float> scores, const op::KeyRange& seen, const Floats& v) const {
    Floats weights(scores.size());
    float largest = -INFINITY, total = 0;
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      largest = std::max(largest, scores[static_cast<std::size_t>(j)]);
    }
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      total += weights[static_cast<std::size_t>(j)] = std::exp(scores[static_cast<std::size_t>(j)] - largest);
    }
    std::ranges::for_each(weights, [total](float& x) { x = quantised(x / total); });
    return product(weights, v, 1, p.d, p.sk);
  }

  [[nodiscard]] Floats online(std::span<const float> scores, const op::KeyRange& seen, const Floats& v) const {
    const auto width = static_cast<std::size_t>(p.d);
    Floats sums(width);
    float largest = -INFINITY, total = 0;
    for (std::int64_t begin = seen.begin; begin < seen.end; begin += static_cast<std::int64_t>(block)) {
      const std::int64_t end = std::min(begin + static_cast<std::int64_t>(block), seen.end);
      const float before = largest;
      for (std::int64_t j = begin; j < end; ++j) {
        largest = std::max(largest, scores[static_cast<std::size_t>(j)]);
      }
      const float shrink = std::exp(before - largest);
      Floats weights;
      total *= shrink;
      for (std::int64_t j = begin; j < end; ++j) {
        weights.push_back(std::exp(scores[static_cast<std::size_t>(j)] - largest));
        total += weights.back();
        weights.back() = quantised(weights.back());
      }
      const Floats part(v.begin() + begin * p.d, v.begin() + end * p.d);
      const Floats added = product(weights, part, 1, p.d, end - begin);
      std::ranges::transform(sums, added, sums.begin(), [shrink](float s, float x) { return s * shrink + x; });
    }
    std::ranges::for_each(sums, [total](float& x) { x /= total; });
    return sums;
  }
};

struct Data {
  std::string name;
  double q = 1, v_mean = 0;
  double least = 0.4;      ///< of the rms of e / sqrt V, o's
  double least_lse = 0.1;  ///< and of lse's
  double mean = 0;         ///< of keys and queries, in units of their deviation
  int outlier_every = 0;   ///< channels of queries and keys whose numbers are 20 times as large
};

struct Fit {
  double worst = 0;  ///< of |e| / B
  double rms = 0;    ///< of e / sqrt V
};

Fit fit_of(const model::ModelRequest& request, const op::Values& values, const char* port, const Numbers& got) {
  const Numbers wanted = testing::value_of(values, port);
  Floats bound(wanted.size()), deviation(wanted.size());
  tolerance::attention_error(request, values, port, bound, deviation);
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

void check(const Kernel& kernel, const Data& data) {
  const op::AttentionParams& p = kernel.p;
  const Problem problem = forward(p);
  Inputs inputs;
  const double part = data.outlier_every == 0 ? 1 : 0.05;
  inputs["q"] = codes(p.sq * p.d, 1, 40 * part, 40 * data.mean);
  inputs["k"] = codes(p.sk * p.d, 2, 70 * part, 70 * data.mean);
  for (const char* port : {"q", "k"}) {
    for (std::size_t n = 0; data.outlier_every != 0 && n < inputs[port].size();
         n += static_cast<std::size_t>(data.outlier_every)) {
      inputs[port][n] = core::round_to(inputs[port][n] / part, kFormat);
    }
  }
  inputs["v"] = codes(p.sk * p.d, 3, 60, 60 * data.v_mean);
  inputs["q_scale_inv"] = {data.q / 40};
  inputs["k_scale_inv"] = {1.0 / 70};
  inputs["v_scale_inv"] = {1.0 / 60};
  add_weight_scales(problem, inputs);
  for (auto& [port, numbers] : inputs) {
    if (port.ends_with("_inv")) {
      numbers[0] = static_cast<double>(static_cast<float>(numbers[0]));
    }
  }
  const op::Values values = testing::evaluate(problem, inputs);
  model::ModelRequest request;
  request.params = &problem.params;
  request.mode = op::find_mode(kMode);
  const Fit o = fit_of(request, values, "o", kernel.run(inputs));
  const Fit lse = fit_of(request, values, "lse", kernel.statistics(inputs));
  const std::string what = data.name + (kernel.normalised ? ", normalised" : ", online") + ", mask " + p.mask +
                           ", keys " + std::to_string(p.sk);
  EXPECT_LE(o.worst, 1) << what;
  EXPECT_LE(o.rms, 1.3) << what;
  EXPECT_GE(o.rms, data.least) << what << ": the prediction is too large to see a fault";
  EXPECT_LE(lse.worst, 1) << what;
  EXPECT_LE(lse.rms, 1.3) << what << ", lse";
  EXPECT_GE(lse.rms, data.least_lse) << what << ": the prediction of lse is too large to see a fault";
  ::testing::Test::RecordProperty(what, std::to_string(o.worst) + " " + std::to_string(o.rms) + " " +
                                            std::to_string(lse.worst) + " " + std::to_string(lse.rms));
}

TEST(Fp8AttentionError, of_both_ways_to_quantise_weights_is_bounded_and_predicted) {
  const std::vector<Data> all = {{"normal"},
                                 {"large scores", 4, 0, 0.2},
                                 {"scores alike", 0.02, 0, 0.1, 0.03},
                                 {"equal scores", 1e-4, 0, 0, 0},
                                 {"values of one sign", 1, 2, 0.05},
                                 {"scores of one sign", 0.2, 0, 0, 0.02, 1},
                                 {"outlier channels", 0.2, 0, 0, 0.1, 0, 7}};
  for (const Data& data : all) {
    for (const char* mask : {"none", "causal"}) {
      for (const bool normalised : {false, true}) {
        for (const std::int64_t keys : {100, 1000}) {
          Kernel kernel{.p = single_head(40, mask == std::string("none") ? keys : 40, 64), .normalised = normalised};
          kernel.p.mask = mask;
          check(kernel, data);
        }
      }
    }
  }
}

}  // namespace
}  // namespace numcheck::reference
