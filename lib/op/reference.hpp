// What an op's reference gives: values in double, and the yardsticks by which errors are judged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "op/value.hpp"

namespace numcheck::op {

/// One input as the reference sees it: dense, row-major, logical shape of the port, decoded to double. For a scaled
/// operand these are the codes' values; the dequantisation factor is in `scale`.
struct Operand {
  std::string_view port;
  const double* data = nullptr;
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  double scale = 1;  ///< value = data * scale
};

/// Which outputs are referenced: all, or a sorted list of flat element indices of the main output.
struct Sample {
  std::vector<std::int64_t> indices;
  [[nodiscard]] bool all() const noexcept { return indices.empty(); }
};

struct ReferenceRequest {
  const Params* params = nullptr;
  std::vector<Operand> inputs;
  Sample sample;
};

/// Values of one output port. With a sample, element i belongs to sample.indices[i]. Dense otherwise.
struct OutputValues {
  std::string_view port;
  core::Buffer<double> value;
};

struct Values {
  std::vector<OutputValues> outputs;
};

/// Yardsticks of one output port, as the error model of the op uses them. For GEMM:
///   magnitude      A  = |alpha| sum |a b| + |beta c| + |bias|, times max(1, |f'|) of the epilogue
///   second_moment  S2 = alpha^2 sum (a b)^2, times f'^2
/// Both are computed in FP32 on the unrounded inputs and inflated by (1 + k 2^-24) so that they never fall short.
struct OutputYardsticks {
  std::string_view port;
  core::Buffer<float> magnitude;
  core::Buffer<float> second_moment;
};

struct Yardsticks {
  std::vector<OutputYardsticks> outputs;
};

/// The two entry points of an op's reference. `values` is called once per distinct rounding of the inputs,
/// `yardsticks` once per shape and distribution. Both run on core::parallel_for.
struct Reference {
  Values (*values)(const ReferenceRequest&);
  Yardsticks (*yardsticks)(const ReferenceRequest&);
  std::string_view version;  ///< part of every cache key: change it when numbers change
  /// Checks the whole main output of a large exact-leg case (all elements, dense, unscaled) without a full reference;
  /// null if the op has no such check.
  bool (*exact_holds)(const ReferenceRequest&, std::span<const double> output) = nullptr;
};

}  // namespace numcheck::op
