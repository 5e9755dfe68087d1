// Hypotheses that another op was applied than the one that was meant: none, more than one, or along another axis.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/typed_numbers.hpp"
#include "op/softmax_fwd.hpp"

namespace numcheck::diagnose {
namespace {

/// Inputs with as many numbers as the output.
std::vector<op::Port> like_output(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  const op::Port output = port_of(evidence);
  std::vector<op::Port> all;
  for (const op::Port& port : subject.c.op->ports(subject.c.params, *subject.c.mode)) {
    const bool same = port.batch == output.batch && port.rows == output.rows && port.cols == output.cols;
    if (port.role == op::Role::input && same && !core::is_integer(port.dtype) && subject.inputs.has(port)) {
      all.push_back(port);
    }
  }
  return all;
}

/// What is expected, from what it was and a number for each element; the yardsticks stay.
template <class Combine>
decltype(Trial::then) combined(const Evidence& evidence, prepare::SharedDoubles with, Combine combine) {
  return change_of(evidence, [with = std::move(with), combine, dtype = port_of(evidence).dtype](
                                 op::OutputValues& output, op::OutputYardsticks*) {
    for (std::size_t i = 0; i < output.value.size() && i < with->size(); ++i) {
      expect_instead(output, i, combine(output.value[i], (*with)[i]));
      allow_rounding(output, i, dtype);
    }
  });
}

std::vector<Hypothesis> not_applied(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  if (!evidence.sample.all()) {
    return all;
  }
  for (const op::Port& port : like_output(evidence)) {
    const prepare::SharedDoubles x = evidence.subject.inputs.of(port);
    Trial same = as_declared(evidence.subject), sum = same;
    same.then = combined(evidence, x, [](double, double input) { return input; });
    sum.then = combined(evidence, x, [](double y, double input) { return y + input; });
    all.push_back(
        {fmt::format("{}_unchanged", port.name),
         {},
         fmt::format("{} is {}: the op was not applied", evidence.port, port.name),
         "Check that the layer runs and that its result, not its input, is what was saved (in place, a branch that "
         "is skipped, nn.Identity).",
         std::move(same)});
    all.push_back({fmt::format("{}_added", port.name),
                   {},
                   fmt::format("{} was added to the result", port.name),
                   "A residual connection is in one of the two: compare before it is added.",
                   std::move(sum)});
  }
  return all;
}

/// log y of softmax outputs, with errors that grow by 1 / y.
std::vector<Hypothesis> logarithm(const Evidence& evidence) {
  if (evidence.subject.c.op->name != "softmax_fwd") {
    return {};
  }
  Trial trial = as_declared(evidence.subject);
  trial.then = change_of(evidence, [](op::OutputValues& output, op::OutputYardsticks*) {
    for (std::size_t i = 0; i < output.value.size(); ++i) {
      const double y = output.value[i];
      for (core::Buffer<float>* errors : {&output.magnitude, &output.deviation}) {
        if (!errors->empty() && y > 0) {
          (*errors)[i] = static_cast<float>(static_cast<double>((*errors)[i]) / y + 0x1p-23 * std::abs(std::log(y)));
        }
      }
      output.value[i] = std::log(y);
    }
  });
  return {{"log_softmax",
           {},
           fmt::format("{} holds the logarithms of the softmax", evidence.port),
           "log_softmax was called for softmax, or the other way round: compare like with like.",
           std::move(trial)}};
}

/// Softmax over the queries of each key.
std::vector<Hypothesis> other_axis(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  if (subject.c.op->name != "softmax_fwd" || !evidence.sample.all()) {
    return {};
  }
  const auto p = op::from_params<op::SoftmaxFwdParams>(subject.c.params);
  if (p.mask != "none" || p.sq < 2) {
    return {};
  }
  const std::vector<op::Port> ports = subject.c.op->ports(subject.c.params, *subject.c.mode);
  Trial trial = as_declared(subject);
  trial.then = change_of(evidence, [p, x = subject.inputs.of(op::port_named(ports, "x"))](op::OutputValues& output,
                                                                                          op::OutputYardsticks*) {
    const auto rows = static_cast<std::size_t>(p.sq), cols = static_cast<std::size_t>(p.sk);
    core::parallel_for(static_cast<std::size_t>(p.batches * p.heads), [&](std::size_t matrix) {
      const std::size_t base = matrix * rows * cols;
      for (std::size_t col = 0; col < cols; ++col) {
        double largest = -INFINITY, sum = 0;
        const auto at = [&](std::size_t row) { return base + row * cols + col; };
        for (std::size_t row = 0; row < rows; ++row) {
          largest = std::max(largest, p.scale * (*x)[at(row)]);
        }
        for (std::size_t row = 0; row < rows; ++row) {
          sum += std::exp(p.scale * (*x)[at(row)] - largest);
        }
        for (std::size_t row = 0; row < rows; ++row) {
          expect_instead(output, at(row), std::exp(p.scale * (*x)[at(row)] - largest) / sum);
        }
      }
    });
  });
  return {{"softmax_over_queries",
           {},
           "the softmax runs over the columns of each matrix, not along its rows",
           "Check dim= (axis=): softmax over keys is the last one.",
           std::move(trial)}};
}

/// Zeros in rows and columns that are zero throughout, which is not what chance does.
double in_whole_lines(const Evidence& evidence) {
  const auto cols = static_cast<std::size_t>(port_of(evidence).cols);
  const std::size_t rows = evidence.sample.all() ? evidence.delivered.size() / std::max<std::size_t>(cols, 1) : 0;
  std::vector<std::size_t> in_row(rows), in_column(cols);
  for (std::size_t i = 0; i < rows * cols; ++i) {
    const std::size_t zero = evidence.delivered[i] == 0 ? 1 : 0;
    in_row[i / cols] += zero;
    in_column[i % cols] += zero;
  }
  return static_cast<double>(cols) * static_cast<double>(std::ranges::count(in_row, cols)) +
         static_cast<double>(rows) * static_cast<double>(std::ranges::count(in_column, rows));
}

/// Some elements are zero, and the others divided by the share that is left.
std::vector<Hypothesis> dropped_out(const Evidence& evidence) {
  constexpr double kFewest = 0.01, kMost = 0.99;
  const std::span<const double> d = evidence.delivered, y = evidence.values.value.span();
  double zeros = 0, of = 0, product = 0, square = 0;
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (y[i] == 0 || !std::isfinite(y[i]) || !std::isfinite(d[i])) {
      continue;
    }
    of += 1;
    zeros += d[i] == 0 ? 1 : 0;
    product += d[i] * y[i];
    square += d[i] != 0 ? y[i] * y[i] : 0;
  }
  if (!(zeros > kFewest * of && zeros < kMost * of && square > 0)) {
    return {};
  }
  if (in_whole_lines(evidence) > zeros / 2) {
    return {};
  }
  // A tile of zeros is something else: dropout makes up for what it drops.
  const double expected = of / (of - zeros);
  const double agree = 0.02 + 3 / std::sqrt(zeros), factor_found = product / square;
  std::vector<Hypothesis> all;
  if (std::abs(factor_found / expected - 1) > agree || std::abs(factor_found - 1) < std::abs(factor_found - expected)) {
    return all;
  }
  for (const double rate : typed_near(1 - square / product)) {
    const double factor = 1 / (1 - rate);
    Trial trial = as_declared(evidence.subject);
    trial.then =
        change_of(evidence, [factor, dtype = port_of(evidence).dtype, d = std::vector<double>(d.begin(), d.end())](
                                op::OutputValues& output, op::OutputYardsticks* yardsticks) {
          for (std::size_t i = 0; i < output.value.size(); ++i) {
            output.value[i] = d[i] == 0 ? 0 : output.value[i] * factor;
          }
          const std::size_t tracked = output.magnitude.size();
          std::vector<core::Buffer<float>*> all_errors = {&output.magnitude, &output.deviation};
          if (yardsticks != nullptr) {
            all_errors.insert(all_errors.end(), {&yardsticks->magnitude, &yardsticks->deviation});
          }
          for (core::Buffer<float>* errors : all_errors) {
            for (float& error : errors->span()) {
              error *= static_cast<float>(std::max(std::abs(factor), 1.0));
            }
          }
          for (std::size_t i = 0; i < tracked; ++i) {
            allow_rounding(output, i, dtype);
          }
        });
    all.push_back({"dropped_out", "dropped_out",
                   fmt::format("{:.3g} % of the elements are zero, and the others divided by 1 - {:.6g}: dropout is on",
                               100 * zeros / of, rate),
                   "Compare in evaluation mode: model.eval(), training=False, deterministic=True.", std::move(trial)});
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"INPUT_unchanged, INPUT_added",
                 "the op was not applied, or its input was added to the result: x_added", &not_applied},
    CatalogueRow{"log_softmax", "logarithms of a softmax", &logarithm},
    CatalogueRow{"softmax_over_queries", "a softmax along another axis", &other_axis},
    CatalogueRow{"dropped_out", "results that dropout was applied to", &dropped_out}};

}  // namespace

std::span<const CatalogueRow> misapplied_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
