// Computes the references of a group, in the order in which cases wait for them.
#include <algorithm>
#include <exception>
#include <utility>

#include "prepare/group.hpp"

namespace numcheck::prepare {
namespace {

template <class Promise, class Compute>
void fulfil(Promise& promise, const RunPart& run_part, const Compute& compute) {
  try {
    decltype(compute()) value;
    run_part([&] { value = compute(); });
    promise.set_value(std::move(value));
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}

void compute_rounding(Group& group, Rounding& rounding, const RunPart& run_part) {
  const Stopwatch watch;
  fulfil(rounding.promise, run_part, [&group, &rounding] {
    const op::ReferenceRequest request{&group.params, rounding.operands, group.sample};
    return std::make_shared<const op::Values>(group.row->reference.values(request));
  });
  group.times.reference_s += watch.seconds();
}

}  // namespace

void compute_references(Group& group, const RunPart& run_part) {
  const Stopwatch watch;
  fulfil(group.yardstick_promise, run_part, [&group] {
    if (group.row->reference.tracked()) {
      return std::make_shared<const op::Yardsticks>();
    }
    const op::ReferenceRequest request{&group.params, group.unrounded, group.sample};
    return std::make_shared<const op::Yardsticks>(group.row->reference.yardsticks(request));
  });
  group.times.yardsticks_s = watch.seconds();
  // Cases are compared in their order, each as soon as its rounding is there: so the total error's values, which all of
  // them want, come first, unless a rounding gives them for nothing.
  const auto identity = std::ranges::find_if(group.in_order, [](const auto& rounding) { return rounding->identity; });
  const bool only_identity =
      std::ranges::all_of(group.in_order, [](const auto& rounding) { return rounding->identity; });
  const bool shared =
      identity != group.in_order.end() && (only_identity || group.total_sample.indices == group.sample.indices);
  if (!shared) {
    fulfil(group.total_promise, run_part, [&group] {
      const op::ReferenceRequest request{&group.params, group.unrounded, group.total_sample, true};
      return std::make_shared<const op::Values>(group.row->reference.values(request));
    });
  }
  for (const auto& rounding : group.in_order) {
    compute_rounding(group, *rounding, run_part);
    if (shared && rounding == *identity) {
      fulfil(group.total_promise, [](const auto& body) { body(); }, [&rounding] { return rounding->values.get(); });
    }
  }
}

void wait_for_references(const Group& group, const Rounding& rounding) {
  group.yardsticks.wait();
  group.total.wait();
  rounding.values.wait();
}

}  // namespace numcheck::prepare
