// A softmax that owns its operands, for the tests of the references.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "op/mode.hpp"
#include "op/reference.hpp"
#include "op/softmax_bwd.hpp"
#include "op/softmax_fwd.hpp"
#include "reference/references.hpp"

namespace numcheck::reference::testing {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

using Inputs = std::map<std::string, std::vector<double>>;

/// The reference's only output on those inputs, which have the ports' formats in that mode.
inline op::OutputValues run_reference(const op::Op& op, const op::Reference& reference, const op::Params& params,
                                      const Inputs& inputs, std::string_view mode) {
  op::ReferenceRequest request{.params = &params, .inputs = {}, .sample = {}};
  for (const op::Port& port : op.ports(params, *op::find_mode(mode))) {
    if (port.role == op::Role::input) {
      request.inputs.push_back(
          {port.name, inputs.at(std::string(port.name)).data(), port.batch, port.rows, port.cols, 1, port.dtype});
    }
  }
  return std::move(reference.values(request).outputs.at(0));
}

inline op::OutputValues forward(const op::SoftmaxFwdParams& p, const Inputs& inputs, std::string_view mode = "fp32") {
  return run_reference(op::softmax_fwd(), softmax_fwd_reference(), op::to_params(p), inputs, mode);
}

inline op::OutputValues backward(const op::SoftmaxBwdParams& p, const Inputs& inputs, std::string_view mode = "fp32") {
  return run_reference(op::softmax_bwd(), softmax_bwd_reference(), op::to_params(p), inputs, mode);
}

inline op::SoftmaxFwdParams rows_of(std::int64_t sq, std::int64_t sk) {
  op::SoftmaxFwdParams p;
  p.sq = sq;
  p.sk = sk;
  return p;
}

inline op::SoftmaxBwdParams gradient_rows_of(std::int64_t sq, std::int64_t sk) {
  op::SoftmaxBwdParams p;
  p.sq = sq;
  p.sk = sk;
  return p;
}

/// Normal numbers that are FP32 ones.
inline std::vector<double> noise(std::size_t count, unsigned seed, double sigma = 1) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(0, sigma);
  std::vector<double> values(count);
  for (double& value : values) {
    value = static_cast<double>(static_cast<float>(normal(engine)));
  }
  return values;
}

}  // namespace numcheck::reference::testing
