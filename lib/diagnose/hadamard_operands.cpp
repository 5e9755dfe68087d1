// Hypotheses about products of which one operand went through the Hadamard transform of NVFP4's recipe, and the other did not.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "diagnose/hypothesis.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::diagnose {
namespace {

constexpr std::size_t kBlock = 16;
using Block = std::array<double, kBlock>;

/// y_k = 1/4 sum_j s_j x_j (-1)^popcount(j & k), which is what both operands of a weight gradient are multiplied by along k, so that
/// their product stays as it is. Source: TransformerEngine pytorch/tensor/nvfp4_tensor.py, get_rht_matrix.
Block transformed(const Block& x) {
  constexpr std::uint32_t kNegative =
      0b1101'0111'1110'1000;  // s = + + + -  + - - -  - - - +  - + - -, the first in the lowest bit
  Block y{};
  for (std::uint32_t k = 0; k < kBlock; ++k) {
    double sum = 0;
    for (std::uint32_t j = 0; j < kBlock; ++j) {
      const std::uint32_t minus = (kNegative >> j & 1) + static_cast<std::uint32_t>(std::popcount(j & k));
      sum += minus % 2 == 0 ? x[j] : -x[j];
    }
    y[k] = sum / 4;
  }
  return y;
}

/// Blocks of 16 within rows, or within columns, of all matrices, rounded to the tensor's format as libraries store them.
prepare::SharedDoubles transformed(const op::Port& port, const core::Buffer<double>& from, bool along_rows) {
  auto to = std::make_shared<core::Buffer<double>>(from.size());
  const auto rows = static_cast<std::size_t>(port.rows), cols = static_cast<std::size_t>(port.cols);
  const std::size_t step = along_rows ? 1 : cols;
  core::parallel_for(from.size() / kBlock, [&](std::size_t block) {
    const std::size_t of_matrix = rows * cols / kBlock, matrix = block / of_matrix * rows * cols;
    const std::size_t within = block % of_matrix;
    const std::size_t first = matrix + (along_rows ? within * kBlock : within / cols * kBlock * cols + within % cols);
    Block x{};
    for (std::size_t j = 0; j < kBlock; ++j) {
      x[j] = from[first + j * step];
    }
    const Block y = transformed(x);
    for (std::size_t j = 0; j < kBlock; ++j) {
      (*to)[first + j * step] = core::round_to(y[j], port.dtype);
    }
  });
  return to;
}

std::vector<Hypothesis> one_operand(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  const std::optional<op::Product> product = op::product_behind(*subject.c.op, subject.c.params, evidence.port);
  if (!product.has_value() || subject.c.mode->scaled) {
    return {};
  }
  const op::GemmParams& p = product->params;
  if (p.k == 0 || p.k % static_cast<std::int64_t>(kBlock) != 0) {
    return {};
  }
  std::vector<Hypothesis> all;
  for (const op::Port& port : subject.c.op->ports(subject.c.params, *subject.c.mode)) {
    const bool is_a = port.name == product->a;
    if ((!is_a && port.name != product->b) || !subject.inputs.has(port)) {
      continue;
    }
    Trial trial = as_declared(subject);
    trial.inputs.set(std::string(port.name),
                     transformed(port, *subject.inputs.of(port), is_a ? !p.trans_a : p.trans_b));
    all.push_back({fmt::format("{}_hadamard_transformed", port.name),
                   {},
                   fmt::format("{} was Hadamard-transformed along k, 16 elements at a time, and {} was not", port.name,
                               is_a ? product->b : product->a),
                   "Transform both operands of the product, as NVFP4's recipe does for weight gradients, or neither.",
                   std::move(trial)});
  }
  return all;
}

constexpr std::array kRows = {CatalogueRow{
    "OPERAND_hadamard_transformed", "one operand of a product went through NVFP4's Hadamard transform", &one_operand}};

}  // namespace

std::span<const CatalogueRow> hadamard_operand_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
