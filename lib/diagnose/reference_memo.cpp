#include "diagnose/reference_memo.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/parallel.hpp"

namespace numcheck::diagnose {
namespace {

/// All of a subject, and the part of it that is tried first.
constexpr std::size_t kMost = 2;

template <class T>
core::Buffer<T> copied(const core::Buffer<T>& from) {
  constexpr std::size_t kPerTask = std::size_t{1} << 18;
  core::Buffer<T> to(from.size());
  core::parallel_chunks(from.size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    std::memcpy(to.data() + begin, from.data() + begin, (end - begin) * sizeof(T));
  });
  return to;
}

op::OutputValues copied(const op::OutputValues& from) {
  op::OutputValues to{.port = from.port,
                      .value = copied(from.value),
                      .magnitude = copied(from.magnitude),
                      .deviation = copied(from.deviation),
                      .terms = copied(from.terms),
                      .term_count = from.term_count,
                      .bit_exact = from.bit_exact,
                      .unpredictable = from.unpredictable,
                      .may_vanish = from.may_vanish,
                      .ideal = copied(from.ideal),
                      .ideal_note = from.ideal_note,
                      .reduction = from.reduction,
                      .argument = {},  // trials change values, and would have to change it with them
                      .row_facts = {},
                      .outside = from.outside,
                      .open = from.open};
  for (const core::Buffer<float>& facts : from.row_facts) {
    to.row_facts.push_back(copied(facts));
  }
  return to;
}

}  // namespace

ReferenceMemo::Results ReferenceMemo::find(const plan::Case& c, const prepare::GivenInputs& inputs,
                                           const op::Sample& sample) const {
  const std::scoped_lock lock(mutex_);
  const Entry* entry = entry_of(c, inputs, sample);
  return entry == nullptr ? Results() : entry->results;
}

const ReferenceMemo::Entry* ReferenceMemo::entry_of(const plan::Case& c, const prepare::GivenInputs& inputs,
                                                    const op::Sample& sample) const {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.op == c.op && entry.mode == c.mode && entry.params == c.params && entry.inputs == inputs &&
           entry.sample.indices == sample.indices;
  });
  return found == entries_.end() ? nullptr : &*found;
}

void ReferenceMemo::keep(const plan::Case& c, const prepare::GivenInputs& inputs, const op::Sample& sample,
                         Results results) {
  const std::scoped_lock lock(mutex_);
  if (entry_of(c, inputs, sample) != nullptr) {
    return;  // another thread was faster
  }
  if (entries_.size() == kMost) {
    entries_.erase(entries_.begin());
  }
  entries_.push_back({c.op, c.mode, c.params, inputs, sample, std::move(results)});
}

op::Values copy_of(const op::Values& values) {
  op::Values copy;
  for (const op::OutputValues& output : values.outputs) {
    copy.outputs.push_back(copied(output));
  }
  return copy;
}

op::Yardsticks copy_of(const op::Yardsticks& yardsticks) {
  op::Yardsticks copy;
  for (const op::OutputYardsticks& output : yardsticks.outputs) {
    copy.outputs.push_back({output.port, copied(output.magnitude), copied(output.deviation)});
  }
  return copy;
}

}  // namespace numcheck::diagnose
