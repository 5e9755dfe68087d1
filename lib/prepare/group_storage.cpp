// Draws, derives and stores the inputs of a group's cases.
#include <algorithm>
#include <utility>

#include "core/trace.hpp"
#include "data/inputs.hpp"
#include "data/nan_payloads.hpp"
#include "data/scaling.hpp"
#include "prepare/group_builder.hpp"

namespace numcheck::prepare {
namespace {

/// Whether doubles of operands are asked for while a case is prepared: to derive inputs.
bool needs_operands(const std::vector<op::Port>& ports) {
  return std::ranges::any_of(ports,
                             [](const op::Port& port) { return port.role == op::Role::input && !port.is_generated(); });
}

bool is_reduced_along_rows(const plan::Case& c, const op::Port& port) {
  return c.op->reduces_along_rows != nullptr && c.op->reduces_along_rows(c.params, port.name);
}

core::StreamId stream_of(const plan::Case& c, const op::Port& port) {
  return {c.seed, core::stream_word(c.op->name), core::stream_word(port.name)};
}

std::string layout_key(const op::Port& port) {
  return format_key(port) + "|" + std::to_string(port.ld) + "|" + std::to_string(port.offset_bytes);
}

core::Buffer<double> copy_of(std::span<const double> values) {
  core::Buffer<double> copy(values.size());
  std::ranges::copy(values, copy.data());
  return copy;
}

}  // namespace

const op::Port* main_output(const std::vector<op::Port>& ports) {
  const auto found = std::ranges::find(ports, op::Role::output, &op::Port::role);
  return found == ports.end() ? nullptr : &*found;
}

bool has_rows_to_pack(const std::vector<op::Port>& ports, const op::Port& input) {
  constexpr std::int64_t kFewest = std::int64_t{1} << 16;
  const op::Port* main = main_output(ports);
  return input.elements() >= kFewest && input.batch * input.rows == main->batch * main->rows;
}

std::string format_key(const op::Port& port) {
  return std::string(port.name) + "|" + std::string(core::dtype_info(port.dtype).name);
}

SharedDoubles GroupBuilder::draws_of(const plan::Case& c, const op::Port& port, std::size_t number) {
  SharedDoubles& draws = draws_[std::string(port.name)];
  if (draws == nullptr) {
    draws = given_.of(port);
  }
  if (draws == nullptr) {
    const core::Span span("draw", port.name);
    data::ExactRole role;
    if (c.inputs.exact_leg()) {
      role.plan = c.op->exact_plan(c.params, *c.mode);
      role.kind = number == 0   ? data::ExactRole::Kind::first
                  : number == 1 ? data::ExactRole::Kind::second
                                : data::ExactRole::Kind::addend;
    }
    role.reduction_along_rows = is_reduced_along_rows(c, port);
    core::Buffer<double> drawn = data::generate_port(port, c.inputs.of(port.name), stream_of(c, port), role);
    if (c.inputs.exact_leg() && role.plan.reason.empty() && c.op->exact_inputs != nullptr) {
      c.op->exact_inputs(c.params, port, drawn.span());
    }
    draws = std::make_shared<const core::Buffer<double>>(std::move(drawn));
  }
  return draws;
}

SharedDoubles GroupBuilder::values_of(const plan::Case& c, const std::vector<op::Port>& ports, const op::Port& port,
                                      std::size_t number) {
  SharedDoubles& values = values_[std::string(port.name)];
  if (values == nullptr) {
    values = draws_of(c, port, number);
    if (!is_generated(port)) {
      const core::Span span("derive", port.name);
      core::Buffer<double> derived = copy_of(values->span());
      std::vector<SharedDoubles> owners;
      group_.row->reference.derive({&group_.params, with_amaxes(c, ports, nullptr, owners), &port}, derived.span());
      values = std::make_shared<const core::Buffer<double>>(std::move(derived));
    }
    group_.unrounded.push_back(
        {port.name, values->data(), port.batch, port.rows, port.cols, static_cast<double>(given_.factor(ports, port))});
    group_.unrounded_owners.push_back(values);
  }
  return values;
}

std::shared_ptr<worker::SharedBlock> GroupBuilder::store(const std::string& key, const op::Port& port,
                                                         std::span<const double> values, float scale) {
  std::shared_ptr<worker::SharedBlock>& block = stored_[key];
  if (block == nullptr) {
    const core::Span span("store", port.name);
    block = allocate_(port.extent_bytes(), worker::use_of(port));
    data::store_port(port, values, scale, block->bytes().first(port.extent_bytes()),
                     given_.has(port) ? data::Infinities::kept : data::Infinities::saturate);
    const std::span<std::byte> stored = block->bytes().first(port.extent_bytes());
    if (group_.row->reference.moved != nullptr && !given_.has(port)) {
      data::vary_nans(port, stored);
    } else if (const auto bits = given_.bits(port); bits.size() == stored.size()) {
      std::ranges::copy(bits, stored.begin());
    }
  }
  return block;
}

GroupBuilder::Stored GroupBuilder::store_generated(const plan::Case& c, const std::vector<op::Port>& ports,
                                                   const op::Port& port, std::size_t number) {
  if (is_drawn_in_blocks(ports, port)) {
    return store_blocks(c, port);
  }
  const SharedDoubles values = values_of(c, ports, port, number);
  Stored stored;
  if (given_.has(port)) {
    stored.scale_inv = given_.factor(ports, port);
  } else if (is_scaled(ports, port.name) && !c.inputs.exact_leg()) {
    stored.scale_to(data::absolute_max(values->span()), port.dtype);
  }
  stored.block = store(layout_key(port), port, values->span(), stored.scale);
  return stored;
}

bool GroupBuilder::is_drawn_in_blocks(const std::vector<op::Port>& ports, const op::Port& port) const {
  return group_.streams && has_rows_to_pack(ports, port) && port.is_generated() &&
         (!needs_operands(ports) || group_.row->reference.largest_of_parts) && !is_scaled(ports, port.name) &&
         !given_.has(port) && group_.row->reference.moved == nullptr;
}

data::Drawn GroupBuilder::draw_blocks(const plan::Case& c, const op::Port& port, std::span<std::byte> bytes) const {
  const core::Span span("draw", port.name);
  return data::draw_port(port, c.inputs.of(port.name), stream_of(c, port), is_reduced_along_rows(c, port), bytes);
}

GroupBuilder::Stored GroupBuilder::store_blocks(const plan::Case& c, const op::Port& port) {
  std::shared_ptr<worker::SharedBlock>& block = stored_[layout_key(port)];
  if (block != nullptr) {
    return {.block = block};
  }
  block = allocate_(port.extent_bytes(), worker::use_of(port));
  const std::span<std::byte> bytes = block->bytes().first(port.extent_bytes());
  const bool is_known = in_fp32_.contains(port.name);
  if (port.dtype == core::Dtype::fp32 && !is_known) {
    note_drawn(port, draw_blocks(c, port, bytes));
    if (port.is_dense()) {
      in_fp32_.emplace(port.name, PackedOperand{port, bytes, block});
    }
    return {.block = block};
  }
  if (!is_known) {
    const op::Port dense = as_fp32(port);
    const auto numbers = std::make_shared<core::Buffer<std::byte>>(dense.extent_bytes());
    note_drawn(port, draw_blocks(c, dense, numbers->span()));
    const PackedOperand drawn{dense, numbers->span(), numbers};
    in_fp32_.emplace(port.name, drawn);
    group_.drawn.emplace(port.name, drawn);
  }
  const core::Span span("store", port.name);
  const PackedOperand& drawn = in_fp32_.find(port.name)->second;
  data::convert_port(drawn.port, drawn.bytes, port, bytes);
  return {.block = block};
}

void GroupBuilder::note_drawn(const op::Port& port, const data::Drawn& drawn) {
  if (in_blocks_.emplace(port.name, drawn).second) {
    group_.unrounded.push_back({port.name, nullptr, port.batch, port.rows, port.cols, 1});
    group_.unrounded_owners.emplace_back();
  }
}

std::vector<op::Operand> GroupBuilder::with_amaxes(const plan::Case& c, const std::vector<op::Port>& ports,
                                                   const Rounding* rounding, std::vector<SharedDoubles>& owners) {
  std::vector<op::Operand> operands = rounding == nullptr ? group_.unrounded : rounding->operands;
  for (op::Operand& operand : operands) {
    if (operand.data != nullptr || operand.elements() == 0) {
      continue;
    }
    const data::Drawn& drawn = in_blocks_.find(operand.port)->second;
    const double& largest = rounding == nullptr ? drawn.largest : rounding->largest_code.find(operand.port)->second;
    const bool may_overflow = rounding != nullptr && !(drawn.largest <= core::dtype_info(operand.dtype).max_finite);
    if (drawn.all_finite && !may_overflow) {
      operand.data = &largest;
      operand.batch = operand.rows = operand.cols = 1;
      continue;
    }
    if (rounding == nullptr) {
      owners.push_back(draws_of(c, op::port_named(ports, operand.port), 0));
    } else {
      const core::Span span("load", operand.port);
      const auto packed = std::ranges::find(rounding->packed, operand.port,
                                            [](const PackedOperand& each) { return std::string_view(each.port.name); });
      owners.push_back(std::make_shared<const core::Buffer<double>>(data::load_port(packed->port, packed->bytes)));
    }
    operand.data = owners.back()->data();
  }
  return operands;
}

void GroupBuilder::finish(const plan::Case& c) {
  for (const op::Port& port : c.op->ports(c.params, *c.mode)) {
    const bool is_stored = std::ranges::any_of(group_.in_order, [&](const auto& rounding) {
      return std::ranges::any_of(rounding->packed, [&](const PackedOperand& packed) {
        return !packed.empty() && packed.port.name == port.name && packed.port.dtype == core::Dtype::fp32;
      });
    });
    if (is_stored) {
      in_fp32_.erase(std::string(port.name));
      group_.drawn.erase(std::string(port.name));
    }
  }
}

GroupBuilder::Stored GroupBuilder::store_derived(const plan::Case& c, const std::vector<op::Port>& ports,
                                                 const Rounding& rounding, const op::Port& port, std::size_t number,
                                                 const std::string& rounding_key) {
  (void)values_of(c, ports, port, number);  // the unrounded operand
  const std::string key = layout_key(port) + "|from " + rounding_key;
  const auto found = derived_.find(key);
  if (found != derived_.end()) {
    return found->second;
  }
  core::Buffer<double> derived = copy_of(draws_of(c, port, number)->span());
  {
    const core::Span span("derive", port.name);
    std::vector<SharedDoubles> owners;
    group_.row->reference.derive({&group_.params, with_amaxes(c, ports, &rounding, owners), &port}, derived.span());
  }
  Stored stored;
  if (is_scaled(ports, port.name)) {
    stored.scale_to(data::absolute_max(derived.span()), port.dtype);
  }
  stored.block = store(key, port, derived.span(), stored.scale);
  return derived_.emplace(key, std::move(stored)).first->second;
}

}  // namespace numcheck::prepare
