// Hypotheses about how a product was summed: in a narrower accumulator, from split operands, in slices.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "diagnose/hypothesis.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::diagnose {
namespace {

using core::Dtype;

/// Accumulators of few bits predict errors beside which others fit as well.
constexpr double kLeastSpread = 0.25;

bool is_plain_gemm(const Evidence& evidence) {
  return evidence.subject.c.op->name == "gemm" && evidence.port == "d";
}

std::vector<Hypothesis> fp16_accumulator(const Evidence& evidence) {
  if (!is_plain_gemm(evidence) || evidence.subject.c.mode->name != "fp16") {
    return {};
  }
  Trial trial = as_declared(evidence.subject);
  trial.c.mode = op::find_mode("fp16_acc16");
  return {{"accumulated_in_fp16",
           {},
           "the sums were accumulated in FP16, not in FP32",
           "Ask for FP32 accumulation: PyTorch torch.backends.cuda.matmul.allow_fp16_accumulation = False; cuBLAS "
           "CUBLAS_COMPUTE_32F; Triton tl.dot(..., out_dtype=tl.float32).",
           std::move(trial),
           kLeastSpread}};
}

/// Numbers of slices: those that libraries choose for long sums, and as many as k has stages of 8 to 128 products, which is
/// what cuBLASLt makes of more (as 792 for k = 538).
std::vector<int> plausible_slices(std::int64_t k) {
  constexpr std::int64_t kShortest = 8, kMost = 1024;
  std::vector<std::int64_t> counts = {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32};
  for (std::int64_t stage = kShortest; stage <= 128; stage *= 2) {
    counts.push_back((k + stage - 1) / stage);
  }
  std::ranges::sort(counts);
  std::vector<int> all;
  for (const std::int64_t count : counts) {
    const bool is_new = all.empty() || count != all.back();
    if (is_new && count >= 2 && count <= kMost && (count - 1) * kShortest < k) {
      all.push_back(static_cast<int>(count));
    }
  }
  return all;
}

/// Slices' sums that were rounded to the output's format before they were added.
std::vector<Hypothesis> rounded_slices(const Evidence& evidence) {
  const op::Port port = port_of(evidence);
  const plan::Case& c = evidence.subject.c;
  const bool is_narrow = port.dtype == Dtype::bf16 || port.dtype == Dtype::fp16;
  const std::optional<op::Product> product = op::product_behind(*c.op, c.params, evidence.port);
  std::vector<Hypothesis> all;
  if (!product.has_value() || !is_narrow || c.mode->compute != op::Compute::fp32) {
    return all;
  }
  const op::GemmParams& p = product->params;
  for (const int slices : plausible_slices(p.k)) {
    Trial trial = as_declared(evidence.subject);
    trial.rounding.slices = slices;
    trial.rounding.group_slices.clear();
    // A library that adds slices so adds C and bias to a rounded sum, if they are not there before.
    trial.rounding.in_place |= p.in_place;
    trial.rounding.bias |= p.bias;
    trial.rounding.gelu |= p.epilogue == "gelu";
    all.push_back({fmt::format("{}={}", kRoundedSlices, slices), std::string(kRoundedSlices),
                   fmt::format("k was split into {} slices, and their sums were rounded to {} before they were added",
                               slices, core::dtype_info(port.dtype).name),
                   std::string(kForbidSlices), std::move(trial), kLeastSpread});
  }
  return all;
}

/// x rounded to the format, and what that leaves, rounded as well.
struct Split {
  prepare::SharedDoubles high, low;
};

Split split(const core::Buffer<double>& from, Dtype dtype) {
  const auto high = std::make_shared<core::Buffer<double>>(from.size());
  const auto low = std::make_shared<core::Buffer<double>>(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    (*high)[i] = core::round_to(from[i], dtype);
    (*low)[i] = core::round_to(from[i] - (*high)[i], dtype);
  }
  return {high, low};
}

/// Three matrices of one shape beside each other, along k: its columns, or its rows.
prepare::SharedDoubles along_k(const op::Port& port, bool k_in_columns,
                               const std::array<prepare::SharedDoubles, 3>& parts) {
  const auto cols = static_cast<std::size_t>(port.cols);
  // Lines that follow each other in memory: rows if k is along them, matrices otherwise.
  const std::size_t line = k_in_columns ? cols : cols * static_cast<std::size_t>(port.rows);
  const std::size_t lines = parts[0]->size() / std::max<std::size_t>(line, 1);
  auto all = std::make_shared<core::Buffer<double>>(3 * parts[0]->size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < lines; ++i) {
    for (const prepare::SharedDoubles& part : parts) {
      std::copy_n(part->data() + i * line, line, all->data() + next);
      next += line;
    }
  }
  return all;
}

/// a b from three products of parts on tensor cores, a1 b1 + a1 b2 + a2 b1: one product with three times as many terms.
std::vector<Hypothesis> three_products(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  std::vector<Hypothesis> all;
  if (!is_plain_gemm(evidence) || subject.c.mode->first != Dtype::fp32) {
    return all;
  }
  const auto p = op::from_params<op::GemmParams>(subject.c.params);
  const std::vector<op::Port> ports = subject.c.op->ports(subject.c.params, *subject.c.mode);
  const op::Port &a_port = op::port_named(ports, "a"), &b_port = op::port_named(ports, "b");
  struct Way {
    Dtype dtype;
    std::string_view name, spelled, remedy;
  };
  constexpr std::array kWays = {
      Way{Dtype::bf16, "three_bf16_products", "BF16",
          "That is what JAX's BF16_BF16_F32_X3 and precision \"high\" do; ask for \"highest\"."},
      Way{Dtype::tf32, "three_tf32_products", "TF32",
          "That is what JAX's TF32_TF32_F32_X3, Triton's input_precision=\"tf32x3\" and CUTLASS's 3xTF32 do: nearly "
          "FP32, "
          "but its sums are truncated. Ask for \"highest\" or \"ieee\" if that matters."}};
  for (const Way& way : kWays) {
    const Split a = split(*subject.inputs.of(a_port), way.dtype), b = split(*subject.inputs.of(b_port), way.dtype);
    Trial trial = as_declared(subject);
    auto longer = p;
    longer.k = 3 * p.k;
    trial.c.params = op::to_params(longer);
    trial.inputs.set("a", along_k(a_port, !p.trans_a, {a.high, a.high, a.low}));
    trial.inputs.set("b", along_k(b_port, p.trans_b, {b.high, b.low, b.high}));
    trial.c.mode = op::find_mode("tf32");
    trial.ran = model::PrecisionClass::tf32_rne;
    trial.conversion = model::Conversion{};  // which changes nothing more
    all.push_back(
        {std::string(way.name),
         {},
         fmt::format("the product was made of three {0} products: of the operands rounded to {0}, and of each with "
                     "what that leaves of the other",
                     way.spelled),
         std::string(way.remedy),
         std::move(trial)});
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"accumulated_in_fp16", "a product of FP16 operands with an FP16 accumulator", &fp16_accumulator},
    CatalogueRow{"three_bf16_products, three_tf32_products", "an FP32 product made of three on tensor cores",
                 &three_products},
    CatalogueRow{"slices_rounded=N", "split-K whose slices are rounded to the output's format", &rounded_slices}};

}  // namespace

std::span<const CatalogueRow> accumulation_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
