// Cases of attention with declared roundings: an emulated unfused kernel, its references and how well errors fit the model.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "attention_unfused_kernel.hpp"
#include "core/codec.hpp"
#include "model/error_model.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_model.hpp"

namespace numcheck::reference::testing {

/// Standard deviations of q and do, the mean of the values, that of queries and keys, how much larger some rows of them are,
/// the standard deviation of k and v, and the mean of do.
struct RoundingData {
  std::string name;
  double q = 1, v_mean = 0, gradient = 1, mean = 0, uneven = 1, k = 1, gradient_mean = 0;
};

/// How errors compare with their model.
struct Fit {
  double worst = 0;  ///< of |e| / B
  double rms = 0;    ///< of e / sqrt V
  double most = 0;   ///< of |e| / sqrt V
};

inline Inputs inputs_of(const Problem& problem, core::Dtype format, const RoundingData& data) {
  Inputs inputs;
  for (const op::Port& port : problem.ports()) {
    if (port.role != op::Role::input) {
      continue;
    }
    const auto size = static_cast<std::size_t>(port.elements());
    const double sigma = port.name == "q"                       ? data.q
                         : port.name == "do"                    ? data.gradient
                         : port.name == "k" || port.name == "v" ? data.k
                                                                : 1;
    const double mean = port.name == "v"                       ? data.v_mean
                        : port.name == "q" || port.name == "k" ? data.mean
                        : port.name == "do"                    ? data.gradient_mean
                                                               : 0;
    std::vector<double> x = noise(size, static_cast<unsigned>(inputs.size()) + 1, sigma, mean);
    for (std::size_t n = 0; n < size && (port.name == "q" || port.name == "k"); ++n) {
      x[n] *= n / static_cast<std::size_t>(port.cols) % 5 == 0 ? data.uneven : 1;
    }
    if (!port.is_generated()) {
      x = derived(problem, inputs, port.name, std::vector<double>(size));
    }
    const bool single = port.name == "lse" || port.name == "softmax_offset";
    std::ranges::transform(x, x.begin(),
                           [&](double y) { return core::round_to(y, single ? core::Dtype::fp32 : format); });
    inputs[std::string(port.name)] = std::move(x);
  }
  return inputs;
}

/// Of an output whose kernel got these numbers.
/// Bounds and deviations of an output's errors.
struct Predicted {
  std::vector<float> bound, deviation;
};

inline Predicted predicted(const Problem& problem, const op::Values& values, std::string_view port,
                           const model::AttentionRounding& rounding) {
  model::ModelRequest request;
  request.params = &problem.params;
  request.mode = op::find_mode(problem.mode);
  request.output = request.mode->first;
  request.expected = problem.mode == "fp32" ? model::PrecisionClass::fp32 : model::PrecisionClass::native;
  request.rounding = rounding;
  const std::size_t size = value_of(values, port).size();
  Predicted errors{std::vector<float>(size), std::vector<float>(size)};
  (problem.op == &op::attention_fwd() ? tolerance::attention_error : tolerance::attention_bwd_error)(
      request, values, port, errors.bound, errors.deviation);
  return errors;
}

inline Fit fit_of(const Problem& problem, const op::Values& values, std::string_view port,
                  const std::vector<double>& got, const model::AttentionRounding& rounding) {
  const std::vector<double> wanted = value_of(values, port);
  const auto [bound, deviation] = predicted(problem, values, port, rounding);
  Fit fit;
  std::size_t count = 0;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    const double e = got[n] - wanted[n], b = static_cast<double>(bound[n]);
    if (std::fabs(e) < 0x1p-149 && (b == 0 || deviation[n] == 0)) {
      continue;  // errors that FP32 does not hold
    }
    fit.worst = std::max(fit.worst, std::fabs(e) / b);
    const double z = std::fabs(e) / std::min(static_cast<double>(deviation[n]), b);
    fit.rms += z * z;
    fit.most = std::max(fit.most, z);
    ++count;
  }
  fit.rms = std::sqrt(fit.rms / static_cast<double>(std::max<std::size_t>(count, 1)));
  return fit;
}

/// A case of both directions with its references.
struct RoundingCase {
  Unfused kernel;
  Problem forward, backward;
  Inputs inputs;
  op::Values forward_values, backward_values;

  RoundingCase(Unfused unfused, const RoundingData& data)
      : kernel(std::move(unfused)),
        forward{&op::attention_fwd(), attention_fwd_reference(), op::to_params(kernel.p), kernel.mode},
        backward{&op::attention_bwd(), attention_bwd_reference(), op::to_params(kernel.p), kernel.mode},
        inputs(inputs_of(backward, kernel.format(), data)),
        forward_values(evaluate(forward, inputs)),
        backward_values(evaluate(backward, inputs)) {}

  /// After a change of inputs: o and lse of the forward pass, and the references.
  void derive_again() {
    const core::Dtype format = kernel.format();
    for (const char* port : {"o", "lse"}) {
      std::vector<double> x = derived(backward, inputs, port, std::vector<double>(inputs[port].size()));
      std::ranges::transform(x, x.begin(), [&](double y) {
        return core::round_to(y, port == std::string_view("lse") ? core::Dtype::fp32 : format);
      });
      inputs[port] = std::move(x);
    }
    forward_values = evaluate(forward, inputs);
    backward_values = evaluate(backward, inputs);
  }

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

/// Variants 0 to 6 differ in biases, sinks, caps, shared heads and dropout; 7 and 8 have one key and a sink, 9 and 10 wide
/// heads and a cap.
inline Unfused kernel_of(const std::string& mode, const std::string& mask, int variant) {
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
  } else if (variant >= 9) {
    kernel.p.d = 96;
    kernel.p.softcap = 30;
    kernel.p.window_left = variant == 9 ? -1 : 0;
  } else if (variant >= 7) {
    kernel.p.sk = 1;
    kernel.p.mask = "none";
    kernel.p.heads = 3;
    kernel.p.softmax = variant == 7 ? "learnable" : "off_by_one";
    kernel.p.softcap = variant == 7 ? 0 : 30;
  } else if (variant >= 5) {
    kernel.p.dropout = variant == 5 ? 0.1 : 0.6;
    kernel.p.heads = 2;
    kernel.p.bias = variant == 5 ? "none" : "post_scale";
  }
  return kernel;
}

/// No error exceeds its bound, and their size is what the model predicts.
inline void expect_predicted(const Fit& fit, const std::string& what) {
  EXPECT_LE(fit.worst, 1) << what;
  EXPECT_LE(fit.rms, 1.3) << what;
  EXPECT_GE(fit.rms, 0.3) << what << ": the prediction is too large to see a fault";
}

}  // namespace numcheck::reference::testing
