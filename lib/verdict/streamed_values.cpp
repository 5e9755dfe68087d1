#include "verdict/streamed_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "metric/compare.hpp"
#include "verdict/comparison.hpp"

namespace numcheck::verdict {
namespace {

std::int64_t rows_of(const op::Port& port) {
  return port.batch * port.rows;
}

/// Parameters of so many rows of the case.
op::Params params_of(const EvaluationContext& context, std::int64_t rows) {
  return context.group->row->reference.on_rows(context.prepared->c->params, rows).value();
}

/// Whether rows tell nothing of an output but their own elements.
bool is_plain(const op::OutputValues& output) {
  return output.ideal.empty() && output.open.empty() && output.outside.empty() && output.row_facts.empty() &&
         !output.unpredictable && !output.may_vanish;
}

/// An output of all rows of which nothing is known yet, like that of a few.
op::OutputValues empty_like(const op::OutputValues& few, std::size_t elements) {
  op::OutputValues all;
  all.port = few.port;
  all.value = core::Buffer<double>(elements);
  all.magnitude = core::Buffer<float>(few.magnitude.empty() ? 0 : elements);
  all.deviation = core::Buffer<float>(few.deviation.empty() ? 0 : elements);
  all.terms = core::Buffer<float>(few.terms.empty() ? 0 : elements);
  all.term_count = few.term_count;
  all.reduction = few.reduction;
  all.bit_exact = few.bit_exact;
  return all;
}

/// Of an output that is one number of all rows: the largest of theirs; NaN stays.
void raise(double part, double& all) {
  all = part > all || std::isnan(part) ? part : all;
}

template <class T>
void copy_to(const core::Buffer<T>& from, core::Buffer<T>& to, std::size_t at) {
  if (!from.empty()) {
    std::ranges::copy(from.span(), to.span().subspan(at, from.size()).begin());
  }
}

/// Elements of some rows of a port that a device stored, divided by the port's scale.
core::Buffer<double> decoded_rows(const op::Port& port, std::span<const std::byte> bytes, std::int64_t first,
                                  std::int64_t count, double scale) {
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const auto cols = static_cast<std::size_t>(port.cols);
  core::Buffer<double> values(static_cast<std::size_t>(count) * cols);
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t row = first + r;
    const auto at = static_cast<std::size_t>(row / port.rows * port.batch_stride + row % port.rows * port.ld);
    core::decode(bytes.subspan(static_cast<std::size_t>(port.offset_bytes) + at * element, cols * element), port.dtype,
                 values.span().subspan(static_cast<std::size_t>(r) * cols, cols));
  }
  if (scale != 1) {
    std::ranges::for_each(values.span(), [scale](double& x) { x /= scale; });
  }
  return values;
}

}  // namespace

StreamedValues::StreamedValues(const EvaluationContext& context)
    : context_(context),
      main_(&*std::ranges::find(context.prepared->ports, op::Role::output, &op::Port::role)),
      stored_(context.prepared->rounding->rows.get()),
      unrounded_(context.prepared->rounding->identity ? nullptr : context.group->unrounded_rows.get()) {
  const op::Reference& reference = context.group->row->reference;
  const plan::Case& c = *context.prepared->c;
  if (reference.row_findings != nullptr) {
    findings_ = reference.row_findings(c.params, *c.mode);
  }
  const auto prepare = [&](const prepare::RowOperands& inputs, bool values_only) {
    const std::int64_t count = std::min(StreamedValues::rows_at_a_time(), rows_of(*main_));
    prepare::RowOperands::Copies copies;
    op::Values all = values_of(inputs.of(0, count, copies), count, values_only);
    for (op::OutputValues& output : all.outputs) {
      if (output.port != main_->name) {
        const op::Port& port = op::port_named(context.prepared->ports, output.port);
        if (rows_of(port) == rows_of(*main_)) {
          output = empty_like(output, static_cast<std::size_t>(port.elements()));
        }
      }
    }
    return all;
  };
  values_ = prepare(*stored_, false);
  if (unrounded_ != nullptr) {
    total_ = prepare(*unrounded_, true);
  }
}

std::int64_t StreamedValues::rows_at_a_time() const {
  constexpr std::int64_t kElements = std::int64_t{1} << 15;
  constexpr std::int64_t kFewest = 8;  // that references compute at once
  return std::max(kFewest, kElements / main_->cols);
}

bool StreamedValues::has_terms() const {
  return !main_of(values_).terms.empty();
}

const op::OutputValues& StreamedValues::main_of(const op::Values& values) const {
  return *std::ranges::find(values.outputs, main_->name, &op::OutputValues::port);
}

op::Values StreamedValues::values_of(std::vector<op::Operand> rows, std::int64_t count, bool values_only) const {
  const op::Params params = params_of(context_, count);
  op::Values values = context_.group->row->reference.values({&params, std::move(rows), {}, values_only, true});
  if (!std::ranges::all_of(values.outputs, &is_plain)) {
    throw metric::NeedsAllRows();
  }
  return values;
}

void StreamedValues::keep(const op::Values& rows, std::int64_t first, op::Values& all) const {
  for (const op::OutputValues& output : rows.outputs) {
    if (output.port == main_->name) {
      continue;
    }
    op::OutputValues& whole = *std::ranges::find(all.outputs, output.port, &op::OutputValues::port);
    if (rows_of(op::port_named(context_.prepared->ports, output.port)) != rows_of(*main_)) {
      const std::scoped_lock lock(mutex_);
      raise(output.value[0], whole.value[0]);
      continue;
    }
    const auto at = static_cast<std::size_t>(first * op::port_named(context_.prepared->ports, output.port).cols);
    copy_to(output.value, whole.value, at);
    copy_to(output.magnitude, whole.magnitude, at);
    copy_to(output.deviation, whole.deviation, at);
    copy_to(output.terms, whole.terms, at);
  }
}

void StreamedValues::find(const std::vector<op::Operand>& inputs, const op::Values& rows, std::int64_t first,
                          std::int64_t count) const {
  std::vector<core::Buffer<double>> decoded;
  std::vector<op::Delivered> delivered;
  for (std::size_t i = 0; i < context_.prepared->ports.size(); ++i) {
    const op::Port& port = context_.prepared->ports[i];
    if (port.role != op::Role::output) {
      continue;
    }
    const auto scale = context_.prepared->scale.find(port.name);
    const double factor = scale == context_.prepared->scale.end() ? 1.0 : static_cast<double>(scale->second);
    const bool has_rows = rows_of(port) == rows_of(*main_);  // else it is one number for all rows
    decoded.push_back(
        decoded_rows(port, context_.host[i].bytes, has_rows ? first : 0, has_rows ? count : rows_of(port), factor));
    delivered.push_back({port.name, {}, port.dtype, factor, {}});
  }
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    delivered[i].value = decoded[i].span();
  }
  const op::Params params = params_of(context_, count);
  findings_->add({&params, inputs, &rows, delivered, &context_.group->sample}, first);
}

metric::ExpectedRows StreamedValues::rows(std::int64_t first, std::int64_t count) const {
  struct Made {
    op::Values values, total;
  };
  const auto made = std::make_shared<Made>();
  prepare::RowOperands::Copies copies;
  const std::vector<op::Operand> inputs = stored_->of(first, count, copies);
  made->values = values_of(inputs, count, false);
  keep(made->values, first, values_);
  if (findings_ != nullptr) {
    find(inputs, made->values, first, count);
  }
  const op::OutputValues& y = main_of(made->values);
  metric::ExpectedRows rows{first,          count, y.value.span(), {}, y.magnitude.span(), y.deviation.span(),
                            y.terms.span(), {}};
  if (unrounded_ != nullptr) {
    prepare::RowOperands::Copies unrounded;
    made->total = values_of(unrounded_->of(first, count, unrounded), count, true);
    keep(made->total, first, total_);
    rows.unrounded = main_of(made->total).value.span();
  }
  rows.owner = made;
  return rows;
}

metric::ExpectedRows StreamedValues::picked(std::span<const std::int64_t> rows) const {
  prepare::RowOperands::Copies copies;
  const auto count = static_cast<std::int64_t>(rows.size());
  const auto made = std::make_shared<const op::Values>(values_of(stored_->picked(rows, copies), count, false));
  const op::OutputValues& y = main_of(*made);
  return {0, count, y.value.span(), {}, y.magnitude.span(), y.deviation.span(), y.terms.span(), made};
}

std::vector<op::Finding> StreamedValues::findings() const {
  return findings_ == nullptr ? std::vector<op::Finding>() : findings_->result(nullptr);
}

std::shared_ptr<const StreamedValues> streamed_values(const EvaluationContext& context) {
  const prepare::PreparedCase& prepared = *context.prepared;
  const plan::ToleranceSpec& wanted = prepared.c->tolerance;
  if (!context.group->streams || context.all_maps || context.gates_only || wanted.max_ulp.has_value() ||
      wanted.rel_l2.has_value()) {
    return nullptr;
  }
  return std::make_shared<const StreamedValues>(context);
}

}  // namespace numcheck::verdict
