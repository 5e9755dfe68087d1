#include "verdict/settled.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/hash.hpp"
#include "verdict/comparison.hpp"
#include "verdict/decoded_outputs.hpp"

namespace numcheck::verdict {
namespace {

template <class T>
core::Buffer<T> copy_of(const core::Buffer<T>& from) {
  core::Buffer<T> to(from.size());
  std::ranges::copy(from.span(), to.data());
  return to;
}

op::OutputValues copy_of(const op::OutputValues& from) {
  op::OutputValues to;
  to.port = from.port;
  to.value = copy_of(from.value);
  to.magnitude = copy_of(from.magnitude);
  to.deviation = copy_of(from.deviation);
  to.terms = copy_of(from.terms);
  to.term_count = from.term_count;
  to.bit_exact = from.bit_exact;
  to.unpredictable = from.unpredictable;
  to.may_vanish = from.may_vanish;
  to.ideal = copy_of(from.ideal);
  to.ideal_note = from.ideal_note;
  to.reduction = from.reduction;
  to.argument = copy_of(from.argument);
  for (const core::Buffer<float>& facts : from.row_facts) {
    to.row_facts.push_back(copy_of(facts));
  }
  to.outside = from.outside;
  to.open = from.open;
  return to;
}

void settle(op::OutputValues& output, const op::Settled& settled) {
  const std::size_t at = settled.element;
  output.value[at] = settled.value;
  if (!output.bit_exact) {
    output.magnitude[at] = settled.asked ? static_cast<float>(settled.magnitude) : std::numeric_limits<float>::max();
    output.deviation[at] =
        settled.asked ? static_cast<float>(settled.deviation) : std::numeric_limits<float>::infinity();
  }
  if (!output.terms.empty()) {
    output.terms[at] = std::numeric_limits<float>::quiet_NaN();
  }
  if (!output.ideal.empty()) {
    output.ideal[at] = settled.value;
  }
}

std::string key_of(std::span<const op::Settled> all) {
  std::vector<std::uint64_t> which;
  for (const op::Settled& settled : all) {
    which.insert(which.end(), {settled.output, settled.element, settled.asked ? std::uint64_t{1} : 0,
                               std::bit_cast<std::uint64_t>(settled.value)});
  }
  return core::digest_of(std::as_bytes(std::span(which))).hex();
}

}  // namespace

std::shared_ptr<const SettledValues> settled_values(const EvaluationContext& context) {
  if (context.streamed != nullptr) {
    return nullptr;  // nothing is open there
  }
  const op::Reference& reference = context.group->row->reference;
  const op::Values& expected = *context.prepared->rounding->values.get();
  const auto is_open = [](const op::OutputValues& output) { return !output.open.empty(); };
  if (reference.settle == nullptr || std::ranges::none_of(expected.outputs, is_open)) {
    return nullptr;
  }
  const DecodedOutputs delivered(*context.prepared, context.host);
  const std::vector<op::Settled> all = reference.settle(
      {&context.group->params, context.inputs(), &expected, delivered.outputs(), &context.group->sample});
  if (all.empty()) {
    return nullptr;
  }
  auto settled = std::make_shared<SettledValues>();
  for (const op::OutputValues& output : expected.outputs) {
    settled->values.outputs.push_back(copy_of(output));
  }
  for (const op::Settled& one : all) {
    settle(settled->values.outputs[one.output], one);
  }
  settled->key = key_of(all);
  return settled;
}

}  // namespace numcheck::verdict
