// Hypotheses about inputs: rounded to fewer bits, exchanged, transposed.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/narrowed.hpp"

namespace numcheck::diagnose {
namespace {

using core::Dtype;
using core::Rounding;
using model::PrecisionClass;

std::string_view spelled(Dtype dtype) {
  switch (dtype) {
    case Dtype::tf32:
      return "TF32";
    case Dtype::bf16:
      return "BF16";
    case Dtype::fp16:
      return "FP16";
    case Dtype::fp8_e4m3:
      return "FP8 E4M3";
    case Dtype::fp8_e5m2:
      return "FP8 E5M2";
    default:
      return core::dtype_info(dtype).name;
  }
}

/// The tensors of the case that hold floating-point numbers of this format's width or more.
std::vector<op::Port> wide_inputs(const Subject& subject, Dtype narrow) {
  std::vector<op::Port> wide;
  for (const op::Port& port : subject.c.op->ports(subject.c.params, *subject.c.mode)) {
    const core::DtypeInfo& info = core::dtype_info(port.dtype);
    if (port.role == op::Role::input && !core::is_integer(port.dtype) && subject.inputs.has(port) &&
        port.elements() > 1 && info.fraction_bits > core::dtype_info(narrow).fraction_bits) {
      wide.push_back(port);
    }
  }
  return wide;
}

bool is_fp32_product(const Subject& subject) {
  return subject.c.op->multiplies_matrices && subject.c.mode->first == Dtype::fp32 &&
         subject.c.mode->compute != op::Compute::emulated_bf16x9;
}

/// A product whose FP32 operands are converted by the hardware, judged as a product on tensor cores. TF32 holds what BF16
/// holds, so that the mode's own conversion changes nothing more.
std::vector<Hypothesis> converted(const Evidence& evidence, Dtype to, Rounding rounding, std::string_view name,
                                  std::string cause, std::string_view remedy) {
  const Subject& subject = evidence.subject;
  if (!is_fp32_product(subject) || subject.c.op->name != "gemm") {
    return {};
  }
  Trial trial = as_declared(subject);
  bool changes = false;
  for (const op::Port& port : wide_inputs(subject, to)) {
    if (port.name != "a" && port.name != "b") {
      continue;
    }
    if (prepare::SharedDoubles values = narrowed(subject.inputs.of(port), to, rounding); values != nullptr) {
      trial.inputs.set(std::string(port.name), std::move(values));
      changes = true;
    }
  }
  if (!changes) {
    return {};
  }
  trial.c.mode = op::find_mode("tf32");
  trial.ran = PrecisionClass::tf32_rne;
  trial.conversion = model::Conversion{};
  return {{std::string(name), {}, std::move(cause), std::string(remedy), std::move(trial)}};
}

std::vector<Hypothesis> operands_in_tf32(const Evidence& evidence) {
  return converted(evidence, Dtype::tf32, Rounding::nearest_even, "operands_in_tf32",
                   "the product ran in TF32: both operands were rounded to 11 significant bits, to nearest",
                   kForbidTf32);
}

/// As cvt.rna.tf32 does, which kernels of XLA and Triton use.
std::vector<Hypothesis> operands_in_tf32_away(const Evidence& evidence) {
  return converted(
      evidence, Dtype::tf32, Rounding::nearest_away, "operands_in_tf32_away",
      "the product ran in TF32: both operands were rounded to 11 significant bits, to nearest, and halves away "
      "from zero",
      kForbidTf32);
}

std::vector<Hypothesis> operands_truncated_to_tf32(const Evidence& evidence) {
  return converted(evidence, Dtype::tf32, Rounding::toward_zero, "operands_truncated_to_tf32",
                   "the product ran in TF32 on operands that were truncated to 11 significant bits, not rounded",
                   "Kernels of one's own must round operands to TF32 before the tensor core reads them (cvt.rna.tf32), "
                   "because it drops the other bits.");
}

std::vector<Hypothesis> operands_in_bf16(const Evidence& evidence) {
  return converted(
      evidence, Dtype::bf16, Rounding::nearest_even, "operands_in_bf16",
      "both operands were rounded to BF16 before they were multiplied",
      "Somebody casts to BF16: autocast, a BF16 weight, JAX's default precision on TPUs, or "
      "CUBLAS_COMPUTE_32F_FAST_16BF. Turn it off, or give the BF16 tensors and mode bf16 to compare with.");
}

/// One input or all of them in a narrower format, before the op.
std::vector<Hypothesis> narrow_inputs(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  std::vector<Hypothesis> all;
  struct Way {
    Dtype dtype;
    Rounding rounding;
    std::string_view suffix;
    std::string_view verb;
  };
  constexpr std::array kWays = {Way{Dtype::tf32, Rounding::nearest_even, "tf32", "rounded to TF32"},
                                Way{Dtype::bf16, Rounding::nearest_even, "bf16", "rounded to BF16"},
                                Way{Dtype::fp16, Rounding::nearest_even, "fp16", "rounded to FP16"},
                                Way{Dtype::bf16, Rounding::toward_zero, "bf16_truncated", "truncated to BF16"},
                                Way{Dtype::fp8_e4m3, Rounding::nearest_even, "fp8_e4m3", "rounded to FP8 E4M3"},
                                Way{Dtype::fp8_e5m2, Rounding::nearest_even, "fp8_e5m2", "rounded to FP8 E5M2"}};
  for (const Way& way : kWays) {
    Trial together = as_declared(subject);
    std::vector<Hypothesis> single;
    for (const op::Port& port : wide_inputs(subject, way.dtype)) {
      const prepare::SharedDoubles values = narrowed(subject.inputs.of(port), way.dtype, way.rounding);
      if (values == nullptr) {
        continue;
      }
      Trial trial = as_declared(subject);
      trial.inputs.set(std::string(port.name), values);
      together.inputs.set(std::string(port.name), values);
      single.push_back({fmt::format("{}_in_{}", port.name, way.suffix),
                        {},
                        fmt::format("{} was {} before it was used", port.name, way.verb),
                        fmt::format("Keep {} in {} up to the op, or give the {} tensor to compare with.", port.name,
                                    spelled(port.dtype), spelled(way.dtype)),
                        std::move(trial)});
    }
    // The rows above say it of operands that the hardware converts.
    const bool is_known = evidence.subject.c.op->name == "gemm" && is_fp32_product(subject) &&
                          (way.suffix == "tf32" || way.suffix == "bf16");
    if (single.size() > 1 && !(is_known && single.size() == 2)) {
      const bool are_operands = subject.c.op->name == "gemm" && single.size() == 2 &&
                                single.front().name.starts_with("a_") && single.back().name.starts_with("b_");
      all.push_back(
          {fmt::format("{}_in_{}", are_operands ? "operands" : "inputs", way.suffix),
           {},
           fmt::format("{} were {} before they were used", are_operands ? "both operands" : "all inputs", way.verb),
           fmt::format("Autocast or a cast in the model: keep the inputs in their format, or give the {} tensors to "
                       "compare with.",
                       spelled(way.dtype)),
           std::move(together)});
    }
    std::ranges::move(single, std::back_inserter(all));
  }
  return all;
}

bool same_shape(const op::Port& a, const op::Port& b) {
  return a.batch == b.batch && a.rows == b.rows && a.cols == b.cols;
}

std::vector<Hypothesis> exchanged_inputs(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  const std::vector<op::Port> ports = wide_inputs(subject, Dtype::fp4_e2m1);
  std::vector<Hypothesis> all;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    for (std::size_t j = i + 1; j < ports.size(); ++j) {
      if (!same_shape(ports[i], ports[j]) || ports[i].dtype != ports[j].dtype) {
        continue;
      }
      Trial trial = as_declared(subject);
      trial.inputs.set(std::string(ports[i].name), subject.inputs.of(ports[j]));
      trial.inputs.set(std::string(ports[j].name), subject.inputs.of(ports[i]));
      all.push_back(
          {fmt::format("{}_and_{}_exchanged", ports[i].name, ports[j].name),
           {},
           fmt::format("{} and {} are exchanged", ports[i].name, ports[j].name),
           fmt::format("Exchange the arguments, or the tensors given for {} and {}.", ports[i].name, ports[j].name),
           std::move(trial)});
    }
  }
  return all;
}

/// The matrices read column by column: what a kernel sees that takes them for transposed.
prepare::SharedDoubles read_by_columns(const op::Port& port, const core::Buffer<double>& from) {
  auto values = std::make_shared<core::Buffer<double>>(from.size());
  const auto rows = static_cast<std::size_t>(port.rows);
  const auto cols = static_cast<std::size_t>(port.cols);
  core::parallel_for(static_cast<std::size_t>(port.batch) * rows, [&](std::size_t row) {
    const std::size_t matrix = row / rows * rows * cols;
    for (std::size_t col = 0; col < cols; ++col) {
      (*values)[row * cols + col] = from[matrix + col * rows + row % rows];
    }
  });
  return values;
}

std::vector<Hypothesis> transposed_inputs(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  std::vector<Hypothesis> all;
  for (const op::Port& port : wide_inputs(subject, Dtype::fp4_e2m1)) {
    if (port.rows < 2 || port.cols < 2) {
      continue;
    }
    Trial trial = as_declared(subject);
    trial.inputs.set(std::string(port.name), read_by_columns(port, *subject.inputs.of(port)));
    all.push_back({fmt::format("{}_transposed", port.name),
                   {},
                   fmt::format("{} was read as if it were stored transposed", port.name),
                   fmt::format("Check the layout of {}: .t() without .contiguous(), a column-major library, or a wrong "
                               "transposition flag.",
                               port.name),
                   std::move(trial)});
  }
  return all;
}

/// Inputs after the first one that were left out: sums without an addend, products without a factor.
std::vector<Hypothesis> missing_inputs(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  const std::vector<op::Port> ports = wide_inputs(subject, Dtype::fp4_e2m1);
  std::vector<Hypothesis> all;
  for (std::size_t i = 1; i < ports.size() && !subject.c.op->multiplies_matrices; ++i) {
    for (const double neutral : {0.0, 1.0}) {
      auto values = std::make_shared<core::Buffer<double>>(static_cast<std::size_t>(ports[i].elements()));
      std::ranges::fill(values->span(), neutral);
      Trial trial = as_declared(subject);
      trial.inputs.set(std::string(ports[i].name), std::move(values));
      all.push_back({fmt::format("{}_as_{}", ports[i].name, neutral == 0 ? "zeros" : "ones"),
                     {},
                     fmt::format("{} was not used: the result is that of {} in its place", ports[i].name,
                                 neutral == 0 ? "zeros" : "ones"),
                     fmt::format("Check that {} is passed on, and that the layer was built with it.", ports[i].name),
                     std::move(trial)});
    }
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"operands_in_tf32", "a product of FP32 operands ran in TF32", &operands_in_tf32},
    CatalogueRow{"operands_in_tf32_away", "the same with halves rounded away from zero", &operands_in_tf32_away},
    CatalogueRow{"operands_truncated_to_tf32", "a product ran in TF32 on truncated operands",
                 &operands_truncated_to_tf32},
    CatalogueRow{"operands_in_bf16", "FP32 operands of a product were rounded to BF16", &operands_in_bf16},
    CatalogueRow{"INPUT_in_FORMAT",
                 "an input, or all of them, in a narrower format: x_in_bf16, inputs_in_fp16, operands_in_fp16",
                 &narrow_inputs},
    CatalogueRow{"INPUT_and_INPUT_exchanged", "two inputs of one shape exchanged: a_and_b_exchanged",
                 &exchanged_inputs},
    CatalogueRow{"INPUT_as_zeros, INPUT_as_ones", "an input that was not used: beta_as_zeros", &missing_inputs},
    CatalogueRow{"INPUT_transposed", "an input read column by column: b_transposed", &transposed_inputs}};

}  // namespace

std::span<const CatalogueRow> operand_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
