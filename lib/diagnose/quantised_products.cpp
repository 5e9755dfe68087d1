// Hypotheses about operands of products that were quantised channel by channel, with scales that were applied to the product: as
// W8A8 layers and row-wise FP8 have it.
#include <algorithm>
#include <array>
#include <cmath>
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
#include "op/gemm.hpp"

namespace numcheck::diagnose {
namespace {

using core::Dtype;

/// Codes of an operand, and the scale of each of its channels: rows of the first operand, columns of the second.
struct Coded {
  prepare::SharedDoubles codes;
  std::vector<double> scales;  ///< batch by batch
};

struct Format {
  std::optional<Dtype> dtype;  ///< nothing: INT8
  std::string_view name, spelled;

  [[nodiscard]] double top() const {
    constexpr double kTopInt8 = 127;
    return dtype.has_value() ? core::dtype_info(*dtype).max_finite : kTopInt8;
  }
  [[nodiscard]] double code(float x) const {
    return dtype.has_value() ? core::round_to(x, *dtype, core::Overflow::saturate)
                             : std::nearbyint(static_cast<double>(x));
  }
};

constexpr std::array kFormats = {Format{Dtype::fp8_e4m3, "fp8_e4m3", "FP8 E4M3"}, Format{std::nullopt, "int8", "INT8"}};

/// How x becomes a code, all in FP32. Numbers half-way between two codes fall to one side or the other.
enum class Division { by_scale, by_inverse, by_largest };

float divided(float x, float largest, float top, Division division) {
  switch (division) {
    case Division::by_scale:
      return x / (largest / top);
    case Division::by_inverse:
      return x * (top / largest);
    case Division::by_largest:
      break;
  }
  return x / largest * top;
}

/// `by_columns`: a channel is a column of the stored tensor.
Coded coded(const op::Port& port, const core::Buffer<double>& x, const Format& format, bool by_columns,
            Division division) {
  const auto rows = static_cast<std::size_t>(port.rows), cols = static_cast<std::size_t>(port.cols);
  const std::size_t channels = by_columns ? cols : rows;
  const auto channel_of = [&](std::size_t i) {
    return i / (rows * cols) * channels + (by_columns ? i % cols : i / cols % rows);
  };
  Coded found;
  found.scales.assign(static_cast<std::size_t>(port.batch) * channels, 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    double& largest = found.scales[channel_of(i)];
    largest = std::isfinite(x[i]) ? std::max(largest, std::fabs(x[i])) : largest;
  }
  const auto top = static_cast<float>(format.top());
  auto codes = std::make_shared<core::Buffer<double>>(x.size());
  constexpr std::size_t kChunk = std::size_t{1} << 14;
  core::parallel_chunks(x.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto largest = static_cast<float>(found.scales[channel_of(i)]);
      (*codes)[i] = largest > 0 ? format.code(divided(static_cast<float>(x[i]), largest, top, division)) : 0;
    }
  });
  found.codes = std::move(codes);
  for (double& scale : found.scales) {
    scale = scale > 0 ? static_cast<float>(scale) / top : 1;
  }
  return found;
}

void scale(core::Buffer<float>& errors, std::size_t i, double factor) {
  if (!errors.empty()) {
    errors[i] = static_cast<float>(static_cast<double>(errors[i]) * factor);
  }
}

/// The product of codes, times the scales of its row and its column; without them where an operand was not quantised.
decltype(Trial::then) scaled(const Evidence& evidence, std::vector<double> of_rows, std::vector<double> of_columns) {
  const op::Port port = port_of(evidence);
  return change_of(evidence, [rows = static_cast<std::size_t>(port.rows), cols = static_cast<std::size_t>(port.cols),
                              of_rows = std::move(of_rows), of_columns = std::move(of_columns)](
                                 op::OutputValues& output, op::OutputYardsticks* yardsticks) {
    for (std::size_t i = 0; i < output.value.size(); ++i) {
      const std::size_t batch = i / (rows * cols);
      const double factor = (of_rows.empty() ? 1 : of_rows[batch * rows + i / cols % rows]) *
                            (of_columns.empty() ? 1 : of_columns[batch * cols + i % cols]);
      output.value[i] *= factor;
      scale(output.magnitude, i, factor);
      scale(output.deviation, i, factor);
      if (yardsticks != nullptr) {
        scale(yardsticks->magnitude, i, factor);
        scale(yardsticks->deviation, i, factor);
      }
    }
  });
}

/// Null: that operand was not quantised.
Hypothesis with_codes(const Evidence& evidence, const Format& format, const Coded* a, const Coded* b) {
  Trial trial = as_declared(evidence.subject);
  if (a != nullptr) {
    trial.inputs.set("a", a->codes);
  }
  if (b != nullptr) {
    trial.inputs.set("b", b->codes);
  }
  trial.then = scaled(evidence, a == nullptr ? std::vector<double>() : a->scales,
                      b == nullptr ? std::vector<double>() : b->scales);
  const bool both = a != nullptr && b != nullptr;
  const std::string name = fmt::format("{}_by_channel_in_{}", both ? "a_and_b" : a != nullptr ? "a" : "b", format.name);
  return {name, name,
          fmt::format("{} quantised to {}, with a scale for each {}, and the product was multiplied by these scales",
                      both           ? "both operands were"
                      : a != nullptr ? "a was"
                                     : "b was",
                      format.spelled,
                      both           ? "row of a and each column of b"
                      : a != nullptr ? "row"
                                     : "column"),
          "A quantised layer: compare with the dequantised tensors, or with the layer in full precision on both sides.",
          std::move(trial)};
}

std::vector<Hypothesis> channels_quantised(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  if (c.op->name != "gemm" || evidence.port != "d" || !evidence.sample.all()) {
    return {};
  }
  const auto p = op::from_params<op::GemmParams>(c.params);
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  const op::Port &a = op::port_named(ports, "a"), &b = op::port_named(ports, "b");
  const bool is_plain = p.beta == 0 && p.epilogue == "none" && !p.bias && core::dtype_info(a.dtype).storage_bytes > 1 &&
                        core::dtype_info(b.dtype).storage_bytes > 1 && a.batch == b.batch;
  if (!is_plain) {
    return {};
  }
  std::vector<Hypothesis> all;
  for (const Format& format : kFormats) {
    for (const Division division : {Division::by_scale, Division::by_inverse, Division::by_largest}) {
      const Coded first = coded(a, *evidence.subject.inputs.of(a), format, p.trans_a, division);
      const Coded second = coded(b, *evidence.subject.inputs.of(b), format, !p.trans_b, division);
      all.push_back(with_codes(evidence, format, nullptr, &second));
      all.push_back(with_codes(evidence, format, &first, &second));
      all.push_back(with_codes(evidence, format, &first, nullptr));
    }
  }
  return all;
}

constexpr std::array kRows = {CatalogueRow{"OPERAND_by_channel_in_FORMAT",
                                           "products of codes, with scales of rows and columns", &channels_quantised}};

}  // namespace

std::span<const CatalogueRow> quantised_product_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
