#include "prepare/group.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <utility>

#include "core/error.hpp"
#include "prepare/group_builder.hpp"
#include "prepare/sampling.hpp"

namespace numcheck::prepare {
namespace {

constexpr std::size_t kReferenceSample = 65'536;   // outputs referenced when a full reference is too large
constexpr double kTotalErrorFlops = 4e9;           // above it the total error is taken on a sample
constexpr std::size_t kTotalErrorSample = 16'384;  // outputs of that sample

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

op::Params without_storage(const plan::Case& c) {
  op::Params params = c.params;
  const std::vector<op::Field>& fields = c.op->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].storage_only && shares_storage(c)) {
      params[i] = fields[i].fallback;
    }
  }
  return params;
}

const op::Port* main_output(const std::vector<op::Port>& ports) {
  const auto found = std::ranges::find(ports, op::Role::output, &op::Port::role);
  return found == ports.end() ? nullptr : &*found;
}

template <class Promise, class Compute>
void fulfil(Promise& promise, const Compute& compute) {
  try {
    promise.set_value(compute());
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}

void compute_rounding(Group& group, Rounding& rounding) {
  const auto start = std::chrono::steady_clock::now();
  fulfil(rounding.promise, [&group, &rounding] {
    const op::ReferenceRequest request{&group.params, rounding.operands, group.sample};
    return std::make_shared<const op::Values>(group.row->reference.values(request));
  });
  group.times.reference_s += seconds_since(start);
}

}  // namespace

PreparedGroup prepare_group(const std::vector<plan::Case>& cases, const GroupPlan& plan, Catalog catalog,
                            double flops_limit, const Allocate& allocate) {
  const auto start = std::chrono::steady_clock::now();
  const plan::Case& first = cases[plan.cases.front()];
  auto group = std::make_shared<Group>();
  group->row = find_row(catalog, first.op->name);
  if (group->row == nullptr) {
    throw core::InternalError("op " + std::string(first.op->name) + " is not in the catalog");
  }
  group->params = without_storage(first);
  group->yardsticks = group->yardstick_promise.get_future().share();
  group->total = group->total_promise.get_future().share();
  const std::vector<op::Port> ports = first.op->ports(first.params, *first.mode);
  // Tracked references cost a few operations per element: they are never sampled.
  const op::Port* output = group->row->reference.tracked() ? nullptr : main_output(ports);
  if (output != nullptr && first.op->flops(first.params) > flops_limit) {
    group->sample = choose_sample(*output, kReferenceSample);
  }
  GroupBuilder builder(*group, allocate);
  std::vector<PreparedCase> prepared;
  for (const std::size_t index : plan.cases) {
    prepared.push_back(builder.prepare(cases[index]));
  }
  // What is sampled must not depend on which other cases of the group run: a resumed run or a shard gives the same
  // record.
  group->total_sample = group->sample;
  if (output != nullptr && first.op->flops(first.params) > kTotalErrorFlops &&
      static_cast<std::size_t>(output->elements()) > kTotalErrorSample) {
    group->total_sample = choose_sample(*output, kTotalErrorSample);
  }
  group->times.inputs_s = seconds_since(start);
  return {std::move(group), std::move(prepared)};
}

void compute_references(Group& group) {
  const auto start = std::chrono::steady_clock::now();
  fulfil(group.yardstick_promise, [&group] {
    if (group.row->reference.tracked()) {
      return std::make_shared<const op::Yardsticks>();
    }
    const op::ReferenceRequest request{&group.params, group.unrounded, group.sample};
    return std::make_shared<const op::Yardsticks>(group.row->reference.yardsticks(request));
  });
  group.times.yardsticks_s = seconds_since(start);
  // Cases are compared in their order, each as soon as its rounding is there: so the total error's values, which all of
  // them want, come first, unless a rounding gives them for nothing.
  const auto identity = std::ranges::find_if(group.in_order, [](const auto& rounding) { return rounding->identity; });
  const bool only_identity =
      std::ranges::all_of(group.in_order, [](const auto& rounding) { return rounding->identity; });
  const bool shared =
      identity != group.in_order.end() && (only_identity || group.total_sample.indices == group.sample.indices);
  if (!shared) {
    fulfil(group.total_promise, [&group] {
      const op::ReferenceRequest request{&group.params, group.unrounded, group.total_sample, true};
      return std::make_shared<const op::Values>(group.row->reference.values(request));
    });
  }
  for (const auto& rounding : group.in_order) {
    compute_rounding(group, *rounding);
    if (shared && rounding == *identity) {
      fulfil(group.total_promise, [&rounding] { return rounding->values.get(); });
    }
  }
}

}  // namespace numcheck::prepare
