// Computes the references of a group, in the order in which cases wait for them.
#include <algorithm>
#include <exception>
#include <future>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/trace.hpp"
#include "prepare/group.hpp"
#include "prepare/lost_sizes.hpp"

namespace numcheck::prepare {
namespace {

/// Adds the seconds that it takes, which whoever waits for the promise may read.
template <class Promise, class Compute>
void fulfil(Promise& promise, double& seconds, const RunPart& run_part, const Compute& compute) {
  const Stopwatch watch;
  try {
    decltype(compute()) value;
    run_part([&] { value = compute(); });
    seconds += watch.seconds();
    promise.set_value(std::move(value));
  } catch (...) {
    seconds += watch.seconds();
    promise.set_exception(std::current_exception());
  }
}

/// "x in bf16": the formats of the operands.
std::string words_of(const Rounding& rounding) {
  std::string words;
  for (const op::Operand& operand : rounding.operands) {
    words += (words.empty() ? "" : ", ") + std::string(operand.port) + " in " +
             std::string(core::dtype_info(operand.dtype).name);
  }
  return words;
}

void expect_bits(const CatalogRow& row, const op::Values& values) {
  const auto has_bits = [](const op::OutputValues& output) { return output.bit_exact || output.unpredictable; };
  if (row.reference.defines_bits && !std::ranges::all_of(values.outputs, has_bits)) {
    throw core::InternalError(fmt::format("an output of {} is not defined bit for bit", row.op->name));
  }
}

void compute_rounding(Group& group, Rounding& rounding, const RunPart& run_part) {
  core::Span span("values");
  span.note([&rounding] { return words_of(rounding); });
  fulfil(rounding.promise, rounding.reference_s, run_part, [&group, &rounding] {
    const op::ReferenceRequest request{&group.params, rounding.operands, group.sample};
    auto values = std::make_shared<const op::Values>(group.row->reference.values(request));
    expect_bits(*group.row, *values);
    return values;
  });
}

std::shared_ptr<const op::Yardsticks> compute_yardsticks(const Group& group) {
  if (group.row->reference.tracked()) {
    return std::make_shared<const op::Yardsticks>();
  }
  const core::Span span("yardsticks");
  const op::ReferenceRequest request{&group.params, group.unrounded, group.sample};
  return std::make_shared<const op::Yardsticks>(group.row->reference.yardsticks(request));
}

}  // namespace

void compute_yardsticks_on_demand(Group& group) {
  group.yardsticks_on_demand = true;
  group.yardsticks = std::async(std::launch::deferred, [&group] { return compute_yardsticks(group); }).share();
}

void choose_yardsticks(Group& group) {
  for (const std::shared_ptr<Rounding>& each : group.in_order) {
    Rounding& rounding = *each;
    if (!rounding.identity && loses_size(group.unrounded, rounding.operands)) {
      rounding.yardsticks = std::async(std::launch::deferred, [&group, &rounding] {
                              const core::Span span("yardsticks", "as rounded");
                              const op::ReferenceRequest request{&group.params, rounding.operands, group.sample};
                              return std::make_shared<const op::Yardsticks>(group.row->reference.yardsticks(request));
                            }).share();
    }
  }
}

void compute_references(Group& group, const RunPart& run_part) {
  if (group.streams) {
    return;
  }
  if (!group.yardsticks_on_demand) {
    fulfil(group.yardstick_promise, group.shared_times.yardsticks_s, run_part,
           [&group] { return compute_yardsticks(group); });
  }
  // Cases are compared in their order, each as soon as its rounding is there: so the total error's values, which all of
  // them want, come first, unless a rounding gives them for nothing.
  const auto identity = std::ranges::find_if(group.in_order, [](const auto& rounding) { return rounding->identity; });
  const bool only_identity =
      std::ranges::all_of(group.in_order, [](const auto& rounding) { return rounding->identity; });
  const bool shared =
      identity != group.in_order.end() && (only_identity || group.total_sample.indices == group.sample.indices);
  if (!shared) {
    fulfil(group.total_promise, group.shared_times.reference_s, run_part, [&group] {
      const core::Span span("values", "unrounded inputs");
      const op::ReferenceRequest request{&group.params, group.unrounded, group.total_sample, true};
      return std::make_shared<const op::Values>(group.row->reference.values(request));
    });
  }
  for (const auto& rounding : group.in_order) {
    compute_rounding(group, *rounding, run_part);
    if (shared && rounding == *identity) {
      fulfil(
          group.total_promise, group.shared_times.reference_s, [](const auto& body) { body(); },
          [&rounding] { return rounding->values.get(); });
    }
  }
  group.times += group.shared_times;
  for (const auto& rounding : group.in_order) {
    group.times.reference_s += rounding->reference_s;
  }
}

void give_up_references(Group& group, const std::exception_ptr& why) noexcept {
  const auto give_up = [&why](auto& promise) {
    try {
      promise.set_exception(why);
    } catch (const std::future_error&) {
      return;  // it was fulfilled
    }
  };
  give_up(group.yardstick_promise);
  give_up(group.total_promise);
  for (const auto& rounding : group.in_order) {
    give_up(rounding->promise);
  }
}

void wait_for_references(const Group& group, const Rounding& rounding) {
  if (group.streams) {
    return;
  }
  if (!group.yardsticks_on_demand) {
    group.yardsticks.wait();
  }
  group.total.wait();
  rounding.values.wait();
}

StageTimes times_of(const Group& group, const PreparedCase& prepared) {
  StageTimes times{.inputs_s = prepared.inputs_s};
  if (prepared.begins_group) {
    times += group.shared_times;
  }
  if (prepared.begins_rounding) {
    times.reference_s += prepared.rounding->reference_s;
  }
  return times;
}

}  // namespace numcheck::prepare
