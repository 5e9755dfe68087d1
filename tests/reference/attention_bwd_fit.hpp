// How errors of emulated gradients of attention compare with what the model predicts, and inputs of such kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "attention_bwd_kernel.hpp"
#include "core/codec.hpp"
#include "op_problem.hpp"
#include "reference/attention_problem.hpp"
#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference::testing {

struct BwdData {
  std::string name;
  double q = 1, v_mean = 0, gradient = 1;
  double along = 0;     ///< do = along * o + noise
  double all_mean = 0;  ///< of every input
  bool loose = false;   ///< admissible kernels differ so much that the prediction is far above some of them
};

struct Fit {
  double worst = 0;  ///< of |e| / B
  double rms = 0;    ///< of e / sqrt V
};

inline Fit fit_of(const op::Values& values, std::string_view port, const Floats& got,
                  const model::ModelRequest& request) {
  const std::vector<double> wanted = value_of(values, port);
  std::vector<float> bound(wanted.size()), deviation(wanted.size());
  tolerance::attention_bwd_error(request, values, port, bound, deviation);
  Fit fit;
  std::size_t count = 0;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    const double e = static_cast<double>(got[n]) - wanted[n];
    if (e == 0 && (bound[n] == 0 || deviation[n] == 0)) {  // a query whose only key is dropped
      continue;
    }
    fit.worst = std::max(fit.worst, std::fabs(e) / static_cast<double>(bound[n]));
    const double z = e / static_cast<double>(std::min(bound[n], deviation[n]));  // as in the comparison
    fit.rms += z * z;
    ++count;
  }
  fit.rms = std::sqrt(fit.rms / static_cast<double>(std::max<std::size_t>(count, 1)));
  return fit;
}

inline Inputs inputs_of(const Problem& problem, core::Dtype format, const BwdData& data) {
  Inputs inputs;
  const auto rounded = [](std::vector<double> x, core::Dtype to) {
    std::ranges::transform(x, x.begin(), [to](double value) { return core::round_to(value, to); });
    return x;
  };
  for (const op::Port& port : problem.ports()) {
    if (port.role != op::Role::input) {
      continue;
    }
    const auto size = static_cast<std::size_t>(port.elements());
    if (!port.is_generated()) {
      inputs[std::string(port.name)] = rounded(derived(problem, inputs, port.name, std::vector<double>(size)),
                                               port.name == "lse" ? core::Dtype::fp32 : format);
      continue;
    }
    const double sigma = port.name == "q" ? data.q : port.name == "do" ? data.gradient : 1;
    inputs[std::string(port.name)] = rounded(noise(size, static_cast<unsigned>(inputs.size()) + 1, sigma,
                                                   data.all_mean + (port.name == "v" ? data.v_mean : 0)),
                                             port.name == "softmax_offset" ? core::Dtype::fp32 : format);
  }
  std::vector<double>& gradient = inputs["do"];
  for (std::size_t n = 0; n < gradient.size(); ++n) {
    gradient[n] = core::round_to(gradient[n] + data.along * inputs["o"][n], format);
  }
  return inputs;
}

inline model::ModelRequest request_of(const Problem& problem, const std::string& mode) {
  model::ModelRequest request;
  request.params = &problem.params;
  request.mode = op::find_mode(mode);
  request.expected = mode == "fp32"   ? model::PrecisionClass::fp32
                     : mode == "tf32" ? model::PrecisionClass::tf32_rne
                                      : model::PrecisionClass::native;
  return request;
}

}  // namespace numcheck::reference::testing
