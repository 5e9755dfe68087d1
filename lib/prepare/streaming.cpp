// Groups whose references are made of some rows at a time: which they are, and how little is kept for them.
#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <utility>

#include "core/cancel.hpp"
#include "core/dtype.hpp"
#include "data/inputs.hpp"
#include "prepare/group.hpp"

namespace numcheck::prepare {
namespace {

/// Whether the first output is worth while, and others have a row for each of its rows, or a number for all of them that parts give.
bool has_many_rows(const std::vector<op::Port>& ports, const op::Reference& reference) {
  constexpr std::int64_t kFewestElements = std::int64_t{1} << 20, kFewestRows = 64, kFewestColumns = 8,
                         kMostColumns = std::int64_t{1} << 16;
  const auto main = std::ranges::find(ports, op::Role::output, &op::Port::role);
  const auto rows_of = [](const op::Port& port) { return port.batch * port.rows; };
  const auto is_number = [&](const op::Port& port) { return reference.largest_of_parts && port.elements() == 1; };
  return main != ports.end() && main->elements() >= kFewestElements && main->rows >= kFewestRows &&
         main->cols >= kFewestColumns && main->cols <= kMostColumns &&
         std::ranges::none_of(ports, [&](const op::Port& port) {
           const bool is_result = port.role == op::Role::output || port.role == op::Role::amax;
           const bool has_rows = port.role == op::Role::output && rows_of(port) == rows_of(*main);
           return port.passed_on || !port.scaled_by.empty() || (is_result && !has_rows && !is_number(port));
         });
}

void forget_packed(const PackedOperand& packed, op::Operand& operand, SharedDoubles& owner) {
  if (!packed.empty()) {
    operand.data = nullptr;
    owner.reset();
  }
}

/// The unrounded operand as FP32 numbers, which a case may store; empty if it is none, or small.
PackedOperand packed_unrounded(const Group& group, const op::Operand& operand) {
  if (const auto drawn = group.drawn.find(operand.port); drawn != group.drawn.end()) {
    return drawn->second;
  }
  PackedOperand packed;
  for (const auto& rounding : group.in_order) {
    for (const PackedOperand& stored : rounding->packed) {
      const bool is_better = packed.empty() || stored.port.dtype == core::Dtype::fp32;
      if (!stored.empty() && stored.port.name == operand.port && stored.port.is_generated() && is_better) {
        packed = stored;
      }
    }
  }
  if (packed.empty() || packed.port.dtype == core::Dtype::fp32) {
    return packed;
  }
  const op::Port dense = as_fp32(packed.port);
  const auto bytes = std::make_shared<core::Buffer<std::byte>>(dense.extent_bytes());
  data::store_port(dense, {operand.data, operand.elements()}, 1, bytes->span());
  return {dense, bytes->span(), bytes};
}

/// Values that are computed when they are first asked for.
template <class Compute>
std::shared_future<std::shared_ptr<const op::Values>> later(const Compute& compute) {
  return std::async(std::launch::deferred, [compute] { return std::make_shared<const op::Values>(compute()); }).share();
}

/// Only bytes stay of large operands.
void pack(Group& group, std::int64_t rows) {
  std::vector<PackedOperand> unrounded;
  for (std::size_t i = 0; i < group.unrounded.size(); ++i) {
    unrounded.push_back(packed_unrounded(group, group.unrounded[i]));
    forget_packed(unrounded.back(), group.unrounded[i], group.unrounded_owners[i]);
  }
  group.unrounded_rows = std::make_shared<const RowOperands>(group.unrounded, std::move(unrounded), rows);
  for (const auto& rounding : group.in_order) {
    for (std::size_t i = 0; i < rounding->operands.size(); ++i) {
      forget_packed(rounding->packed[i], rounding->operands[i], rounding->owners[i]);
    }
    rounding->rows = std::make_shared<const RowOperands>(rounding->operands, rounding->packed, rows);
  }
}

}  // namespace

bool may_stream(const plan::Case& c, const CatalogRow& row) {
  const op::Reference& reference = row.reference;
  const bool has_findings = reference.findings == nullptr || reference.row_findings != nullptr;
  return reference.on_rows != nullptr && reference.tracked() && has_findings && !c.inputs.exact_leg() &&
         reference.on_rows(c.params, 1).has_value() && has_many_rows(c.op->ports(c.params, *c.mode), reference);
}

bool may_stream(const std::vector<plan::Case>& cases, const GroupPlan& plan, const CatalogRow& row) {
  return std::ranges::all_of(plan.cases, [&](std::size_t index) { return may_stream(cases[index], row); });
}

void stream(Group& group, const op::Port& main) {
  pack(group, main.batch * main.rows);
  group.yardstick_promise.set_value(std::make_shared<const op::Yardsticks>());
}

WholeRows::WholeRows(Group& group, Rounding& rounding) : group_(group), rounding_(rounding) {
  if (!group.streams) {
    return;
  }
  static std::timed_mutex whole;
  constexpr auto kPollInterval = std::chrono::milliseconds(50);
  one_ = std::unique_lock(whole, std::defer_lock);
  while (!one_.try_lock_for(kPollInterval)) {
    core::throw_if_cancelled();
  }
  rounding.rows->fill(rounding.operands, rounding.owners);
  rounding.values = later(
      [&group, &rounding] { return group.row->reference.values({&group.params, rounding.operands, group.sample}); });
  if (rounding.identity) {
    group.total = rounding.values;
    return;
  }
  group.unrounded_rows->fill(group.unrounded, group.unrounded_owners);
  group.total = later(
      [&group] { return group.row->reference.values({&group.params, group.unrounded, group.total_sample, true}); });
}

WholeRows::~WholeRows() {
  if (!one_.owns_lock()) {
    return;
  }
  rounding_.values = {};
  group_.total = {};
  rounding_.rows->empty(rounding_.operands, rounding_.owners);
  if (!rounding_.identity) {
    group_.unrounded_rows->empty(group_.unrounded, group_.unrounded_owners);
  }
}

}  // namespace numcheck::prepare
