#include "run/group_work.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "core/cancel.hpp"
#include "core/parallel.hpp"
#include "run/work_watch.hpp"

namespace numcheck::run {
namespace {

/// Operations per second of a reference on one slow core without a BLAS, with a margin.
constexpr double kSlowestFlops = 1e8;

}  // namespace

bool GroupWork::streams(const prepare::GroupPlan& plan) const {
  const prepare::CatalogRow* row = prepare::find_row(catalog_, cases_[plan.cases.front()].op->name);
  return !options_.on_tensors && row != nullptr && prepare::may_stream(cases_, plan, *row);
}

void GroupWork::prepare(AdmittedGroup& group) {
  const core::SerialSection serial(group.small);
  const core::TraceSection section(options_.workers.trace, "coordinator", subject_of(cases_, group.plan));
  const core::Span span("inputs");
  // Each case may need inputs of its own, which may come from a reference.
  const double limit_s = static_cast<double>(group.plan.cases.size()) * time_limit(group.plan);
  const auto work =
      stop_.work().begin(fmt::format("the inputs of {}", cases_[group.plan.cases.front()].id), {.time_s = limit_s});
  try {
    const auto allocate = [this](std::size_t size, worker::BlockUse use) { return pool_.allocate(size, use); };
    const auto references = options_.on_tensors ? prepare::References::whole : prepare::References::of_rows_if_possible;
    work.run([&] {
      group.made =
          prepare::prepare_group(cases_, group.plan, catalog_, options_.reference_flops_limit, allocate, references);
    });
  } catch (const core::Cancelled&) {
    return;  // they were never started
  } catch (const OutOfTime& limit) {
    for (const std::size_t index : group.plan.cases) {
      flights_.time_out(index, fmt::format("{}; the device was not asked", limit.what()));
    }
    return;
  } catch (const std::exception& failure) {
    for (const std::size_t index : group.plan.cases) {
      flights_.fail(index, fmt::format("cannot prepare the inputs: {}", failure.what()));
    }
    return;
  }
  group.shared = std::make_shared<SharedGroup>(std::move(group.memory), std::move(group.made.group), group.small);
}

void GroupWork::compute_references(const AdmittedGroup& group) {
  if (!group.shared) {
    return;
  }
  const core::SerialSection serial(group.small);
  const prepare::GroupPlan& plan = group.plan;
  const core::TraceSection section(options_.workers.trace, "coordinator", subject_of(cases_, plan));
  const core::Span span("reference");
  {
    const auto work = stop_.work().begin(
        fmt::format("the reference of {}", cases_[plan.cases.front()].id),
        {.time_s = time_limit(plan), .stuck_s = options_.reference_grace_s + flops_of(cases_, plan) / kSlowestFlops});
    std::exception_ptr out_of_time;  // the others would take as long
    prepare::compute_references(*group.shared->group, [&](const std::function<void()>& part) {
      if (out_of_time) {
        std::rethrow_exception(out_of_time);
      }
      try {
        work.run(part);
      } catch (const OutOfTime&) {
        out_of_time = std::current_exception();
        throw;
      }
    });
  }
  results_.add_times(*group.shared->group);
}

double GroupWork::time_limit(const prepare::GroupPlan& plan) const {
  double limit_s = 0;
  for (const std::size_t index : plan.cases) {
    limit_s = std::max(limit_s, cases_[index].timeout_s.value_or(options_.workers.timeout_s));
  }
  return limit_s;
}

double flops_of(const std::vector<plan::Case>& cases, const prepare::GroupPlan& plan) {
  double flops = 0;
  for (const std::size_t index : plan.cases) {
    flops += cases[index].op->flops(cases[index].params);
  }
  return flops;
}

core::TraceSubject subject_of(const std::vector<plan::Case>& cases, const prepare::GroupPlan& plan) {
  return {cases[plan.cases.front()].id, plan.cases.size()};
}

}  // namespace numcheck::run
