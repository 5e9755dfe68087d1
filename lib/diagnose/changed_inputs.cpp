// Hypotheses about inputs that are those of another time or place: negated, of the neighbouring row, quantised.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {
namespace {

using core::Dtype;

std::vector<op::Port> number_inputs(const Subject& subject) {
  std::vector<op::Port> all;
  for (const op::Port& port : subject.c.op->ports(subject.c.params, *subject.c.mode)) {
    const bool has_numbers = core::dtype_info(port.dtype).storage_bytes > 1 && !core::is_integer(port.dtype);
    // Single numbers are scales, and masks are no numbers.
    const bool is_tensor = port.elements() > 1 && !port.name.ends_with("mask");
    if (port.role == op::Role::input && has_numbers && subject.inputs.has(port) && is_tensor) {
      all.push_back(port);
    }
  }
  return all;
}

Hypothesis with_input(const Evidence& evidence, const op::Port& port, prepare::SharedDoubles values,
                      std::string_view what, std::string cause, std::string remedy) {
  Trial trial = as_declared(evidence.subject);
  trial.inputs.set(std::string(port.name), std::move(values));
  return {fmt::format("{}_{}", port.name, what), {}, std::move(cause), std::move(remedy), std::move(trial)};
}

template <class Change>
prepare::SharedDoubles changed(const core::Buffer<double>& from, Change change) {
  auto values = std::make_shared<core::Buffer<double>>(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    (*values)[i] = change(i);
  }
  return values;
}

std::vector<Hypothesis> negated(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  for (const op::Port& port : number_inputs(evidence.subject)) {
    const prepare::SharedDoubles x = evidence.subject.inputs.of(port);
    all.push_back(with_input(
        evidence, port, changed(*x, [&](std::size_t i) { return -(*x)[i]; }), "negated",
        fmt::format("{} was used with the opposite sign", port.name),
        port.name == "freqs" ? "The rotation goes the other way: check the sign of the sine, and which half is negated."
                             : fmt::format("Check the sign of {}.", port.name)));
  }
  return all;
}

/// Masks of 0 and 1, of which frameworks mean both: in PyTorch's attention, True is what takes part.
std::vector<Hypothesis> inverted(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  const plan::Case& c = evidence.subject.c;
  for (const op::Port& port : c.op->ports(c.params, *c.mode)) {
    if (port.role != op::Role::input || !port.name.ends_with("mask") || !evidence.subject.inputs.has(port)) {
      continue;
    }
    const prepare::SharedDoubles x = evidence.subject.inputs.of(port);
    if (std::ranges::all_of(x->span(), [](double mask) { return mask == 0 || mask == 1; })) {
      all.push_back(with_input(
          evidence, port, changed(*x, [&](std::size_t i) { return 1 - (*x)[i]; }), "inverted",
          fmt::format("{} was used the other way round: 1 where it is 0, and 0 where it is 1", port.name),
          fmt::format("Here {}. Masks of PyTorch's scaled_dot_product_attention mean the opposite of those of "
                      "TransformerEngine: invert one of them.",
                      port.name == "mask" ? "1 is what is masked out" : "1 is what is kept")));
    }
  }
  return all;
}

/// Of ops whose rows are positions or tokens. Rows of a product's operand move the output's with them.
std::vector<Hypothesis> next_rows(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  if (evidence.subject.c.op->multiplies_matrices) {
    return all;
  }
  for (const op::Port& port : number_inputs(evidence.subject)) {
    const std::int64_t rows = port.batch * port.rows;
    if (rows < 2) {
      continue;
    }
    const prepare::SharedDoubles x = evidence.subject.inputs.of(port);
    for (const std::int64_t step : {1, -1}) {
      const auto from = [&](std::size_t i) {
        const std::int64_t row = static_cast<std::int64_t>(i) / port.cols;
        const std::int64_t other = std::clamp<std::int64_t>(row + step, 0, rows - 1);
        return (*x)[static_cast<std::size_t>(other * port.cols + static_cast<std::int64_t>(i) % port.cols)];
      };
      all.push_back(with_input(
          evidence, port, changed(*x, from), step > 0 ? "of_next_row" : "of_row_before",
          fmt::format("each row is computed with the {} row of {}", step > 0 ? "next" : "previous", port.name),
          fmt::format("Look at the index into {}: positions that start at 1 for 0, an offset of a "
                      "cache that is one off.",
                      port.name)));
    }
  }
  return all;
}

/// Of products in a batch: each with an operand of another one, or all with that of the first.
std::vector<Hypothesis> other_matrices(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  if (evidence.subject.c.op->name != "gemm") {
    return all;
  }
  struct Way {
    std::string_view what, cause;
    std::int64_t step;  ///< to the matrix that is used; 0: the first one is
  };
  constexpr std::array kWays = {Way{"of_next_batch", "each product has the {} of the next one in the batch", 1},
                                Way{"of_batch_before", "each product has the {} of the one before it in the batch", -1},
                                Way{"of_first_batch", "all products of the batch have the {} of the first one", 0}};
  for (const op::Port& port : number_inputs(evidence.subject)) {
    const prepare::SharedDoubles x = evidence.subject.inputs.of(port);
    const std::int64_t size = port.rows * port.cols;
    for (const Way& way : kWays) {
      if (port.batch < 2 || (port.batch == 2 && way.step < 0)) {  // of two, the next one is the one before
        continue;
      }
      const auto from = [&](std::size_t i) {
        const std::int64_t matrix = static_cast<std::int64_t>(i) / size, in = static_cast<std::int64_t>(i) % size;
        const std::int64_t other = way.step == 0 ? 0 : (matrix + way.step + port.batch) % port.batch;
        return (*x)[static_cast<std::size_t>(other * size + in)];
      };
      all.push_back(with_input(evidence, port, changed(*x, from), way.what,
                               fmt::format(fmt::runtime(way.cause), port.name),
                               fmt::format("Look at the batch stride of {} (0 repeats the first matrix), at its first "
                                           "address, and at the order of the list of matrices.",
                                           port.name)));
    }
  }
  return all;
}

/// Of gated ops, whose input has two halves: rows of pairs, one of each half.
std::vector<Hypothesis> interleaved(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  const std::int64_t hidden = port_of(evidence).cols;
  for (const op::Port& port : number_inputs(evidence.subject)) {
    if (evidence.subject.c.op->multiplies_matrices || hidden < 2 || port.cols != 2 * hidden) {
      continue;
    }
    const prepare::SharedDoubles x = evidence.subject.inputs.of(port);
    const auto from = [&](std::size_t i) {
      const auto cols = static_cast<std::size_t>(port.cols), half = cols / 2, col = i % cols;
      return (*x)[i - col + (col < half ? 2 * col : 2 * (col - half) + 1)];
    };
    all.push_back(with_input(evidence, port, changed(*x, from), "interleaved",
                             fmt::format("{} was read as pairs, of which each half has one", port.name),
                             "Gate and value are interleaved in one of the two, and halves in the other: reorder the "
                             "rows of the weight that makes them."));
  }
  return all;
}

/// What has a scale of its own.
enum class Scaled { tensor, rows, columns };

/// How a tensor is quantised.
struct Quantiser {
  std::optional<Dtype> dtype;  ///< nothing: INT8
  Scaled scaled = Scaled::tensor;
  std::string_view what, spelled;
};

/// x as codes times a scale, by which its largest magnitude becomes the largest code. PyTorch multiplies by the inverse of a
/// number that it divides by; others divide.
prepare::SharedDoubles quantised(const op::Port& port, const core::Buffer<double>& x, const Quantiser& way,
                                 bool by_inverse) {
  constexpr double kTopInt8 = 127;
  constexpr std::size_t kChunk = std::size_t{1} << 14;
  const auto cols = static_cast<std::size_t>(port.cols);
  const auto line_of = [&](std::size_t i) {
    return way.scaled == Scaled::rows      ? i / cols
           : way.scaled == Scaled::columns ? i / (cols * static_cast<std::size_t>(port.rows)) * cols + i % cols
                                           : 0;
  };
  std::vector<double> largest(x.empty() ? 0 : line_of(x.size() - 1) + 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    double& most = largest[line_of(i)];
    most = std::isfinite(x[i]) ? std::max(most, std::abs(x[i])) : most;
  }
  // In FP32, as those who quantise do: a number at a boundary would otherwise fall to the other side.
  const auto codes = static_cast<float>(way.dtype.has_value() ? core::dtype_info(*way.dtype).max_finite : kTopInt8);
  auto values = std::make_shared<core::Buffer<double>>(x.size());
  core::parallel_chunks(x.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto most = static_cast<float>(largest[line_of(i)]);
      const float scale = !(most > 0) ? 1 : by_inverse ? most * (1 / codes) : most / codes;
      const auto scaled = static_cast<double>(static_cast<float>(x[i]) / scale);
      const double code =
          way.dtype.has_value() ? core::round_to(scaled, *way.dtype, core::Overflow::saturate) : std::nearbyint(scaled);
      (*values)[i] = static_cast<double>(static_cast<float>(code) * scale);
    }
  });
  return values;
}

std::vector<Hypothesis> quantised_inputs(const Evidence& evidence) {
  constexpr std::array kWays = {
      Quantiser{Dtype::fp8_e4m3, Scaled::tensor, "scaled_to_fp8_e4m3", "FP8 E4M3, scaled by its largest magnitude"},
      Quantiser{Dtype::fp8_e4m3, Scaled::rows, "rows_scaled_to_fp8_e4m3",
                "FP8 E4M3, each row scaled by its largest magnitude"},
      Quantiser{std::nullopt, Scaled::tensor, "scaled_to_int8", "INT8, scaled by its largest magnitude"},
      Quantiser{std::nullopt, Scaled::rows, "rows_scaled_to_int8", "INT8, each row scaled by its largest magnitude"},
      Quantiser{Dtype::fp8_e4m3, Scaled::columns, "columns_scaled_to_fp8_e4m3",
                "FP8 E4M3, each column scaled by its largest magnitude"},
      Quantiser{std::nullopt, Scaled::columns, "columns_scaled_to_int8",
                "INT8, each column scaled by its largest magnitude"}};
  std::vector<Hypothesis> all;
  if (!evidence.subject.c.op->multiplies_matrices) {
    return all;
  }
  std::vector<op::Port> ports = number_inputs(evidence.subject);
  std::erase_if(ports, [](const op::Port& port) {  // which is added to products
    return port.name == "bias" || port.name == "c" || port.name == "softmax_offset";
  });
  for (const Quantiser& way : kWays) {
    for (const bool by_inverse : {false, true}) {
      Trial together = as_declared(evidence.subject);
      for (const op::Port& port : ports) {
        prepare::SharedDoubles values = quantised(port, *evidence.subject.inputs.of(port), way, by_inverse);
        together.inputs.set(std::string(port.name), values);
        all.push_back(with_input(
            evidence, port, std::move(values), way.what, fmt::format("{} was quantised to {}", port.name, way.spelled),
            fmt::format("A quantised layer: compare with the dequantised {}, or with the layer in full "
                        "precision on both sides.",
                        port.name)));
        all.back().family = all.back().name;
      }
      const std::string name = fmt::format("inputs_{}", way.what);
      all.push_back({name, name, fmt::format("all inputs were quantised to {}", way.spelled),
                     "A quantised layer: compare with the dequantised tensors, or in full precision on both sides.",
                     std::move(together)});
    }
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"INPUT_negated", "an input with the opposite sign: freqs_negated", &negated},
    CatalogueRow{"INPUT_inverted", "a mask that means the opposite: mask_inverted", &inverted},
    CatalogueRow{"INPUT_of_next_row, INPUT_of_row_before", "positions that are one off", &next_rows},
    CatalogueRow{"INPUT_of_next_batch, INPUT_of_batch_before, INPUT_of_first_batch",
                 "products of a batch with an operand of another one: b_of_next_batch", &other_matrices},
    CatalogueRow{"INPUT_interleaved", "gate and value in pairs, not in halves", &interleaved},
    CatalogueRow{"INPUT_scaled_to_FORMAT, INPUT_rows_scaled_to_FORMAT, INPUT_columns_scaled_to_FORMAT",
                 "quantised operands of products", &quantised_inputs}};

}  // namespace

std::span<const CatalogueRow> changed_input_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
