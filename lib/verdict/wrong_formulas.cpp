#include "verdict/wrong_formulas.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "verdict/comparison.hpp"
#include "verdict/decoded_outputs.hpp"

namespace numcheck::verdict {
namespace {

using tolerance::WrongFormula;

constexpr double kMostOperations = 2e9;  ///< of all mistakes of a case together
constexpr double kOwnGates = 100;        ///< operations per element of gates that judge what a device chose

/// The elements that the certificate looks at, by output.
std::map<std::string_view, op::Sample> looked_at(const EvaluationContext& context) {
  std::map<std::string_view, op::Sample> samples;
  for (const op::Port& port : context.prepared->ports) {
    if (port.role == op::Role::output || port.role == op::Role::amax) {
      samples[port.name] = tolerance::certificate_sample(port, &context.group->sample);
    }
  }
  return samples;
}

const op::Port& main_output(const EvaluationContext& context) {
  return *std::ranges::find(context.prepared->ports, op::Role::output, &op::Port::role);
}

/// Some rows of a case whose rows do not know of each other, as a case of their own.
class SomeRows {
 public:
  /// Those that the certificate looks at.
  SomeRows(const EvaluationContext& context, const std::map<std::string_view, op::Sample>& samples) {
    for (const op::Port& port : context.prepared->ports) {
      const auto sample = samples.find(port.name);
      const bool has_rows = sample != samples.end() && port.role != op::Role::amax;
      for (std::size_t i = 0; has_rows && i < sample->second.indices.size(); ++i) {
        const std::int64_t row = sample->second.indices[i] / port.cols;
        if (rows_.empty() || rows_.back() != row) {
          rows_.push_back(row);
        }
      }
    }
    std::ranges::sort(rows_);
    rows_.erase(std::ranges::unique(rows_).begin(), rows_.end());
    if (context.streamed != nullptr) {
      operands_ = context.prepared->rounding->rows;
      return;
    }
    const op::Port& main = main_output(context);
    const std::vector<op::Operand> all(context.inputs().begin(), context.inputs().end());
    operands_ = std::make_shared<const prepare::RowOperands>(all, std::vector<prepare::PackedOperand>(all.size()),
                                                             main.batch * main.rows);
  }

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Those of the rows from the first to before the last.
  [[nodiscard]] std::vector<op::Operand> inputs(std::size_t begin, std::size_t end,
                                                prepare::RowOperands::Copies& copies) const {
    return operands_->picked(std::span(rows_).subspan(begin, end - begin), copies);
  }
  [[nodiscard]] std::int64_t row(std::size_t at) const { return rows_[at]; }
  /// Where an element of an output with `cols` columns has gone, of rows from the first.
  [[nodiscard]] std::size_t place(std::int64_t element, std::int64_t cols, std::size_t begin) const {
    const auto first = rows_.begin() + static_cast<std::ptrdiff_t>(begin);
    return static_cast<std::size_t>((std::lower_bound(first, rows_.end(), element / cols) - first) * cols +
                                    element % cols);
  }

 private:
  std::vector<std::int64_t> rows_;
  std::shared_ptr<const prepare::RowOperands> operands_;
};

/// Outputs that are one number, each the largest so far; NaN stays.
void raise_numbers(const op::Values& part, op::Values& all) {
  for (const op::OutputValues& output : part.outputs) {
    if (output.value.size() != 1) {
      continue;
    }
    auto known = std::ranges::find(all.outputs, output.port, &op::OutputValues::port);
    if (known == all.outputs.end()) {
      known = all.outputs.emplace(all.outputs.end());
      known->port = output.port;
      known->value = core::Buffer<double>(1);
      known->value[0] = output.value[0];
    }
    const double number = output.value[0];
    known->value[0] = number > known->value[0] || std::isnan(number) ? number : known->value[0];
  }
}

/// A way to get at what mistakes make of the elements that the certificate looks at.
class Mistaken {
 public:
  explicit Mistaken(const EvaluationContext& context) : context_(context), samples_(looked_at(context)) {
    const op::Reference& reference = context.group->row->reference;
    if (reference.on_rows != nullptr && reference.tracked() && reference.on_rows(context.prepared->c->params, 1)) {
      rows_.emplace(context, samples_);
    }
  }

  /// What a mistake costs, in operations. Only references with yardsticks of their own can be asked for a sample.
  [[nodiscard]] double operations() const {
    const plan::Case& c = *context_.prepared->c;
    const op::Port& main = main_output(context_);
    const auto all = static_cast<double>(main.elements());
    const double whole = c.op->flops == nullptr ? all : c.op->flops(c.params);
    if (rows_) {
      return whole * static_cast<double>(rows_->count()) / static_cast<double>(main.batch * main.rows);
    }
    return context_.group->row->reference.tracked()
               ? whole
               : whole * static_cast<double>(samples_.find(main.name)->second.indices.size()) / all;
  }

  /// Adds what the mistake makes of every output.
  void add(const op::Mistake& mistake, WrongFormulas& formulas) const {
    const op::Reference& reference = context_.group->row->reference;
    const auto formula = mistake.instead == nullptr ? reference.values : mistake.instead;
    if (rows_.has_value() && !mistake.of_all_rows) {
      add_of_rows(mistake, formula, formulas);
      return;
    }
    op::ReferenceRequest request{&mistake.params, {}, {}, true};
    if (context_.streamed == nullptr) {
      request.inputs.assign(context_.inputs().begin(), context_.inputs().end());
    }
    if (!reference.tracked()) {
      request.sample = samples_.find(main_output(context_).name)->second;
    }
    const op::Values wrong =
        context_.streamed == nullptr ? formula(request) : largest_of_parts(mistake.params, formula);
    for (const op::Port& port : context_.prepared->ports) {
      const auto output = std::ranges::find(wrong.outputs, port.name, &op::OutputValues::port);
      if (samples_.contains(port.name) && output != wrong.outputs.end()) {
        formulas[std::string(port.name)].push_back({mistake.name, mistake.text, values_of(mistake, *output, port)});
      }
    }
  }

 private:
  /// Of the rows that the certificate looks at, a few at a time. An amax is that of all rows.
  template <class Formula>
  void add_of_rows(const op::Mistake& mistake, const Formula& formula, WrongFormulas& formulas) const {
    constexpr std::int64_t kElements = std::int64_t{1} << 15;
    const auto at_once = std::max<std::int64_t>(8, kElements / std::max<std::int64_t>(1, main_output(context_).cols));
    std::map<std::string_view, std::vector<double>> found;
    std::mutex mutex;
    core::parallel_chunks(
        static_cast<std::size_t>(rows_->count()), static_cast<std::size_t>(at_once),
        [&](std::size_t, std::size_t begin, std::size_t end) {
          const auto params =
              context_.group->row->reference.on_rows(mistake.params, static_cast<std::int64_t>(end - begin));
          prepare::RowOperands::Copies copies;
          const op::Values wrong = formula({&params.value(), rows_->inputs(begin, end, copies), {}, true, true});
          for (const op::Port& port : context_.prepared->ports) {
            const auto output = std::ranges::find(wrong.outputs, port.name, &op::OutputValues::port);
            if (port.role == op::Role::amax || !samples_.contains(port.name) || output == wrong.outputs.end()) {
              continue;
            }
            const std::vector<std::int64_t>& sample = samples_.find(port.name)->second.indices;
            const std::scoped_lock lock(mutex);
            std::vector<double>& values = found[port.name];
            values.resize(sample.size());
            const auto first = std::ranges::lower_bound(sample, rows_->row(begin) * port.cols);
            const std::int64_t last = (rows_->row(end - 1) + 1) * port.cols;
            for (auto at = first; at != sample.end() && *at < last; ++at) {
              const double value = output->value[rows_->place(*at, port.cols, begin)];
              values[static_cast<std::size_t>(at - sample.begin())] =
                  mistake.then == nullptr ? value : mistake.then(value);
            }
          }
        });
    for (auto& [port, values] : found) {
      formulas[std::string(port)].push_back({mistake.name, mistake.text, std::move(values)});
    }
  }

  /// Outputs that are one number of all rows, which are not there at a time.
  template <class Formula>
  [[nodiscard]] op::Values largest_of_parts(const op::Params& mistaken, const Formula& formula) const {
    op::Values all;
    std::mutex mutex;
    prepare::for_each_rows(main_output(context_), [&](std::int64_t first, std::int64_t count) {
      const auto params = context_.group->row->reference.on_rows(mistaken, count).value();
      prepare::RowOperands::Copies copies;
      const op::Values part =
          formula({&params, context_.prepared->rounding->rows->of(first, count, copies), {}, true, true});
      const std::scoped_lock lock(mutex);
      raise_numbers(part, all);
    });
    return all;
  }

  [[nodiscard]] std::vector<double> values_of(const op::Mistake& mistake, const op::OutputValues& output,
                                              const op::Port& port) const {
    const op::Sample& sample = samples_.find(port.name)->second;
    std::vector<double> values(sample.indices.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t element = sample.indices[i];
      const std::size_t at = context_.group->row->reference.tracked() ? static_cast<std::size_t>(element) : i;
      values[i] = mistake.then == nullptr ? output.value[at] : mistake.then(output.value[at]);
    }
    return values;
  }

  const EvaluationContext& context_;
  std::map<std::string_view, op::Sample> samples_;
  std::optional<SomeRows> rows_;
};

WrongFormulas compute(const EvaluationContext& context) {
  const plan::Case& c = *context.prepared->c;
  const std::vector<op::Mistake> mistakes = context.group->row->reference.mistakes(c.params, *c.mode);
  WrongFormulas formulas;
  if (mistakes.empty()) {
    return formulas;
  }
  const Mistaken mistaken(context);
  if (mistaken.operations() * static_cast<double>(mistakes.size()) <= kMostOperations) {
    for (const op::Mistake& mistake : mistakes) {
      mistaken.add(mistake, formulas);
    }
  }
  return formulas;
}

/// The mistake in place of what the run delivered, and the output whose gate rejects it, or the first that has it.
std::pair<std::string, tolerance::Fake> judge_in_choice(const EvaluationContext& context, const op::Mistake& mistake,
                                                        std::span<const op::Delivered> delivered) {
  op::ReferenceRequest request{&mistake.params, {context.inputs().begin(), context.inputs().end()}, {}, true};
  for (const op::Delivered& output : delivered) {
    request.inputs.push_back({.port = output.port,
                              .data = output.value.data(),
                              .cols = static_cast<std::int64_t>(output.value.size()),
                              .dtype = output.dtype});
  }
  op::Values wrong = mistake.instead(request);
  std::vector<op::Delivered> planted(delivered.begin(), delivered.end());
  for (op::OutputValues& output : wrong.outputs) {
    const auto in = std::ranges::find(planted, output.port, &op::Delivered::port);
    for (double& value : output.value.span()) {
      value = core::round_to(value, in->dtype);
    }
    in->value = output.value.span();
  }
  const op::FindingRequest gates{&context.group->params, context.inputs(), &values_of_case(context), planted,
                                 &context.group->sample};
  for (const op::Finding& finding : context.group->row->reference.findings(gates)) {
    if (std::isfinite(finding.limit) && !(finding.measured <= finding.limit)) {
      return {finding.port, {mistake.name, tolerance::Fake::Outcome::rejected, finding.name}};
    }
  }
  return {std::string(wrong.outputs.front().port), {mistake.name, tolerance::Fake::Outcome::not_told, mistake.text}};
}

/// Rows or columns whose overflows the device has settled, and elements of any value, tell nothing.
void keep_open(const op::OutputValues& expected, const op::Sample& looked_at, const metric::CompareInput& input,
               std::vector<WrongFormula>& formulas) {
  for (const auto* ranges : {&expected.open, &expected.outside}) {
    for (const op::OutputValues::Range& range : *ranges) {
      const auto first = std::ranges::lower_bound(looked_at.indices, range.begin);
      for (auto at = first; at != looked_at.indices.end() && *at < range.end; ++at) {
        for (WrongFormula& formula : formulas) {
          formula.values[static_cast<std::size_t>(at - looked_at.indices.begin())] =
              input.expected[static_cast<std::size_t>(*at)];
        }
      }
    }
  }
}

}  // namespace

std::vector<WrongFormula> wrong_formulas(const EvaluationContext& context, const op::Port& port,
                                         const metric::CompareInput& input) {
  if (context.group->row->reference.mistakes == nullptr || context.last_pass != nullptr ||
      context.converted != nullptr || port.elements() == 0) {
    return {};
  }
  const std::string key = fmt::format("{}", static_cast<const void*>(context.prepared->rounding.get()));
  const auto all = context.cache->formulas_or(key, [&] { return compute(context); });
  const auto found = all->find(port.name);
  if (found == all->end()) {
    return {};
  }
  std::vector<WrongFormula> formulas = found->second;
  keep_open(expected_values(context, port), tolerance::certificate_sample(port, input.sample), input, formulas);
  return formulas;
}

std::map<std::string, std::vector<tolerance::Fake>, std::less<>> judge_in_choices(const EvaluationContext& context) {
  const op::Reference& reference = context.group->row->reference;
  const op::Values& expected = values_of_case(context);
  if (reference.mistakes == nullptr || reference.findings == nullptr || context.last_pass != nullptr ||
      !std::ranges::all_of(expected.outputs, &op::OutputValues::unpredictable)) {
    return {};
  }
  const plan::Case& c = *context.prepared->c;
  const std::vector<op::Mistake> mistakes = reference.mistakes(c.params, *c.mode);
  double elements = 0;
  for (const op::OutputValues& output : expected.outputs) {
    elements += static_cast<double>(output.value.size());
  }
  std::map<std::string, std::vector<tolerance::Fake>, std::less<>> fakes;
  if (elements * kOwnGates * static_cast<double>(mistakes.size()) > kMostOperations) {
    return fakes;
  }
  const DecodedOutputs delivered(*context.prepared, context.host);
  for (const op::Mistake& mistake : mistakes) {
    auto [port, fake] = judge_in_choice(context, mistake, delivered.outputs());
    fakes[std::move(port)].push_back(std::move(fake));
  }
  return fakes;
}

}  // namespace numcheck::verdict
