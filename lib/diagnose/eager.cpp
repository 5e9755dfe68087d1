// Hypotheses about modules that frameworks run operation by operation, in 16 bits: what a fused kernel keeps in FP32 until it
// has the output is rounded in between.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "diagnose/hypothesis.hpp"
#include "op/activation_params.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/rope.hpp"

namespace numcheck::diagnose {
namespace {

using core::Dtype;

constexpr double kFp32 = 0x1p-20;  // relative, of what FP32 finds for a number that is rounded then
constexpr std::string_view kRemedy =
    "A module of several operations against a fused kernel: compare kernels of one kind, or allow for an ulp of the "
    "format for each operation. Neither is wrong; the fused one is closer to the exact result.";

/// A number as it is stored in between, and what it may be off by: an ulp if FP32 may have found it beyond a boundary.
struct Held {
  double value = 0;
  double slack = 0;
};

Held held(double exact, double error, Dtype dtype) {
  const double value = core::round_to(exact, dtype), ulp = core::ulp(value, dtype);
  return {value, 0.5 * ulp - std::fabs(exact - value) <= error ? ulp : 0};
}

Held times(const Held& a, double b) {
  return {a.value * b, a.slack * std::fabs(b)};
}

/// Products of 16-bit numbers are exact in FP32.
Held stored(const Held& a, Dtype dtype) {
  const Held rounded = held(a.value, a.slack, dtype);
  return {rounded.value, a.slack + (a.slack > 0 ? rounded.slack : 0)};
}

Held sum(const Held& a, const Held& b) {
  return {a.value + b.value, a.slack + b.slack};
}

/// What is expected, element by element; it errs as declared, and by what it is off.
decltype(Trial::then) elements(const Evidence& evidence, std::function<Held(std::size_t)> element) {
  return change_of(evidence, [element = std::move(element)](op::OutputValues& output, op::OutputYardsticks*) {
    constexpr std::size_t kPerTask = std::size_t{1} << 12;
    core::parallel_chunks(output.value.size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const Held y = element(i);
        expect_instead(output, i, y.value);
        if (y.slack > 0 && !output.magnitude.empty() && !output.deviation.empty()) {
          output.magnitude[i] += static_cast<float>(y.slack);
          output.deviation[i] = std::hypot(output.deviation[i], static_cast<float>(y.slack));
        }
      }
    });
  });
}

/// Of outputs of which all elements are there, and inputs in 16 bits: the format of `port`.
std::optional<Dtype> format_of(const Evidence& evidence, std::string_view port) {
  const plan::Case& c = evidence.subject.c;
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  const op::Port* const found = op::find_port(ports, port);
  const bool is_short = found != nullptr && (found->dtype == Dtype::bf16 || found->dtype == Dtype::fp16) &&
                        evidence.subject.inputs.has(*found);
  return is_short && evidence.sample.all() ? std::optional(found->dtype) : std::nullopt;
}

prepare::SharedDoubles input(const Evidence& evidence, std::string_view port) {
  const plan::Case& c = evidence.subject.c;
  return evidence.subject.inputs.of(op::port_named(c.op->ports(c.params, *c.mode), port));
}

std::string spelled(Dtype dtype) {
  return dtype == Dtype::bf16 ? "BF16" : "FP16";
}

Hypothesis hypothesis(const Evidence& evidence, std::string name, std::string cause,
                      std::function<Held(std::size_t)> element) {
  Trial trial = as_declared(evidence.subject);
  trial.then = elements(evidence, std::move(element));
  return {std::move(name), {}, std::move(cause), std::string(kRemedy), std::move(trial)};
}

/// The function of a gated kind alone, of all first halves; nothing for a kind that has no name of its own.
std::optional<prepare::SharedDoubles> of_first_halves(const Evidence& evidence, const op::ActivationParams& p) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kAlone = {
      {{"geglu", "gelu"}, {"swiglu", "silu"}, {"reglu", "relu"}, {"qgeglu", "qgelu"}, {"sreglu", "srelu"}}};
  const auto* const alone = std::ranges::find(kAlone, p.kind, &std::pair<std::string_view, std::string_view>::first);
  if (alone == kAlone.end()) {
    return std::nullopt;
  }
  const prepare::SharedDoubles x = input(evidence, "x");
  const auto hidden = static_cast<std::size_t>(p.hidden);
  auto first = std::make_shared<core::Buffer<double>>(x->size() / 2);
  for (std::size_t i = 0; i < first->size(); ++i) {
    (*first)[i] = (*x)[i / hidden * 2 * hidden + i % hidden];
  }
  Trial trial = as_declared(evidence.subject);
  trial.c.params[*op::field_index(*trial.c.op, "kind")] = std::string(alone->second);
  trial.inputs.set("x", std::move(first));
  constexpr double kFlops = 1e12;
  const Expected expected = expect(evidence.subject, trial, kFlops);
  const auto y = std::ranges::find(expected.values->outputs, "y", &op::OutputValues::port);
  auto values = std::make_shared<core::Buffer<double>>(y->value.size());
  std::ranges::copy(y->value.span(), values->span().begin());
  return values;
}

/// swiglu as F.silu(gate) * up.
std::vector<Hypothesis> gated(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  if (c.op->name != "activation_fwd" || evidence.port != "y") {
    return {};
  }
  const auto p = op::from_params<op::ActivationParams>(c.params);
  const std::optional<Dtype> dtype = format_of(evidence, "x");
  if (!dtype.has_value() || !op::activation_kind(p.kind).gated || op::is_mxfp8(p.output)) {
    return {};
  }
  const std::optional<prepare::SharedDoubles> function = of_first_halves(evidence, p);
  if (!function.has_value()) {
    return {};
  }
  const auto hidden = static_cast<std::size_t>(p.hidden);
  return {hypothesis(
      evidence, fmt::format("activation_rounded_to_{}", core::dtype_info(*dtype).name),
      fmt::format("the activation was rounded to {} before it was multiplied by the second half", spelled(*dtype)),
      [f = *function, x = input(evidence, "x"), hidden, dtype = *dtype](std::size_t i) {
        const double activation = (*f)[i];
        return times(held(activation, kFp32 * std::fabs(activation), dtype),
                     (*x)[i / hidden * 2 * hidden + hidden + i % hidden]);
      })};
}

/// Of each row of LayerNorm 1 / sqrt(var + epsilon), and the mean.
struct RowOfNorm {
  double mean = 0, scale = 1;
};

std::vector<RowOfNorm> rows_of(const core::Buffer<double>& x, const op::NormParams& p) {
  const auto hidden = static_cast<std::size_t>(p.hidden);
  std::vector<RowOfNorm> rows(static_cast<std::size_t>(p.rows));
  core::parallel_for(rows.size(), [&](std::size_t row) {
    const std::span<const double> own = x.span().subspan(row * hidden, hidden);
    RowOfNorm& of = rows[row];
    for (const double one : own) {
      of.mean += one / static_cast<double>(hidden);
    }
    double squares = 0;
    for (const double one : own) {
      squares += (one - of.mean) * (one - of.mean) / static_cast<double>(hidden);
    }
    of.scale = 1 / std::sqrt(squares + p.epsilon);
  });
  return rows;
}

/// LayerNorm whose normalised rows are stored, before gamma and beta, or before each of them.
std::vector<Hypothesis> normalised(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  const std::optional<Dtype> dtype = format_of(evidence, "x");
  if (c.op->name != "layernorm_fwd" || evidence.port != "y" || !dtype.has_value()) {
    return {};
  }
  const auto p = op::from_params<op::LayernormFwdParams>(c.params);
  const prepare::SharedDoubles x = input(evidence, "x"), gamma = input(evidence, "gamma"),
                               beta = input(evidence, "beta");
  const auto rows = std::make_shared<const std::vector<RowOfNorm>>(rows_of(*x, p));
  const auto hidden = static_cast<std::size_t>(p.hidden);
  const auto element = [=, one = p.zero_centered_gamma ? 1.0 : 0.0, dtype = *dtype](std::size_t i, bool product_too) {
    const RowOfNorm& row = (*rows)[i / hidden];
    const double exact = row.scale * ((*x)[i] - row.mean);
    const double error = kFp32 * (std::fabs(exact) + row.scale * (std::fabs((*x)[i]) + std::fabs(row.mean)) / 4);
    const Held product = times(held(exact, error, dtype), (*gamma)[i % hidden] + one);
    return sum(product_too ? stored(product, dtype) : product, {(*beta)[i % hidden], 0});
  };
  const std::string_view name = core::dtype_info(*dtype).name;
  return {
      hypothesis(evidence, fmt::format("normalised_rounded_to_{}", name),
                 fmt::format("normalised rows were rounded to {} before gamma and beta were applied", spelled(*dtype)),
                 [element](std::size_t i) { return element(i, false); }),
      hypothesis(evidence, fmt::format("normalised_and_product_rounded_to_{}", name),
                 fmt::format("normalised rows were rounded to {}, and again before beta was added", spelled(*dtype)),
                 [element](std::size_t i) { return element(i, true); })};
}

/// Rotations with a stored cosine and sine, whose products are stored as well, or not.
std::vector<Hypothesis> rotated(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  const bool backward = c.op->name == "rope_bwd";
  const std::string_view from = backward ? "dy" : "x";
  const std::optional<Dtype> dtype = format_of(evidence, from);
  if ((c.op->name != "rope_fwd" && !backward) || !dtype.has_value()) {
    return {};
  }
  const auto p = op::from_params<op::RopeParams>(c.params);
  const auto element = [=, x = input(evidence, from), freqs = input(evidence, "freqs"), dtype = *dtype](
                           std::size_t at, bool products_too) -> Held {
    const auto dim = static_cast<std::size_t>(p.dim), rotated = static_cast<std::size_t>(p.rotated());
    const std::size_t i = at % dim, half = rotated / 2;
    if (i >= rotated) {
      return {(*x)[at], 0};
    }
    const std::int64_t token = static_cast<std::int64_t>(at / dim) / p.heads;
    const std::int64_t position = p.layout == "sbhd" ? token / p.batch : token % p.seq;
    const std::size_t angles = static_cast<std::size_t>(p.start + position) * rotated;
    const bool first = p.interleaved ? i % 2 == 0 : i < half;
    const std::size_t partner = p.interleaved ? i ^ 1U : first ? i + half : i - half;
    const auto term = [&](double factor, double function) {
      const Held product = times(held(function, kFp32, dtype), factor);
      return products_too ? stored(product, dtype) : product;
    };
    const double sign = first != backward ? -1 : 1;
    return sum(term((*x)[at], std::cos((*freqs)[angles + i])),
               term(sign * (*x)[at - i + partner], std::sin((*freqs)[angles + (backward ? partner : i)])));
  };
  const std::string_view name = core::dtype_info(*dtype).name;
  return {hypothesis(evidence, fmt::format("cosine_and_sine_in_{}", name),
                     fmt::format("cosines and sines were rounded to {}", spelled(*dtype)),
                     [element](std::size_t i) { return element(i, false); }),
          hypothesis(evidence, fmt::format("rotated_in_{}", name),
                     fmt::format("cosines, sines and their products were rounded to {} before the products were added",
                                 spelled(*dtype)),
                     [element](std::size_t i) { return element(i, true); })};
}

constexpr std::array kRows = {
    CatalogueRow{"activation_rounded_to_FORMAT", "a gated activation as two operations: silu(gate) * up", &gated},
    CatalogueRow{"normalised_rounded_to_FORMAT, normalised_and_product_rounded_to_FORMAT",
                 "LayerNorm as several operations", &normalised},
    CatalogueRow{"cosine_and_sine_in_FORMAT, rotated_in_FORMAT", "a rotary embedding as several operations", &rotated}};

}  // namespace

std::span<const CatalogueRow> eager_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
