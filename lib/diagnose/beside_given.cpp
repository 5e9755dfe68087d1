#include "diagnose/beside_given.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "data/inputs.hpp"
#include "worker/plain_block.hpp"

namespace numcheck::diagnose {
namespace {

const op::OutputValues* values_of(const op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  return found == values.outputs.end() ? nullptr : &*found;
}

/// An output that nobody gave, as the reference says.
void fill_in(const prepare::PreparedCase& prepared, const op::Port& port, const op::Values& values,
             std::span<const op::Settled> settled, std::span<std::byte> bytes) {
  const bool is_amax = port.role == op::Role::amax;
  const op::OutputValues* of = values_of(values, port.name);
  const op::OutputValues* largest_of = is_amax && of == nullptr ? values_of(values, port.of) : nullptr;
  if (largest_of != nullptr) {
    const double largest = data::absolute_max(largest_of->value.span());
    data::store_port(port, std::span(&largest, 1), 1, bytes);
  } else if (of != nullptr && of->value.size() == static_cast<std::size_t>(port.elements())) {
    const auto scale = prepared.scale.find(port.name);
    std::vector<double> numbers(of->value.span().begin(), of->value.span().end());
    for (const op::Settled& one : settled) {
      if (&values.outputs[one.output] == of) {
        numbers[one.element] = one.value;
      }
    }
    data::store_port(port, numbers, scale == prepared.scale.end() ? 1 : scale->second, bytes);
  } else {
    std::ranges::fill(bytes, std::byte{0});
  }
}

/// What is right in another way than the reference says, as the outputs that were given show (which of tied experts are chosen).
std::vector<op::Settled> settled_by_given(const Subject& subject, const Trial& trial,
                                          const prepare::PreparedGroup& made, const op::Values& values) {
  const prepare::PreparedCase& prepared = made.cases.front();
  const op::Reference& reference = made.group->row->reference;
  if (reference.settle == nullptr ||
      std::ranges::all_of(values.outputs, [](const op::OutputValues& output) { return output.open.empty(); })) {
    return {};
  }
  std::vector<core::Buffer<double>> numbers;
  std::vector<op::Delivered> given;
  for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
    const op::Port& port = prepared.ports[i];
    if (port.role == op::Role::output && given_bytes(subject, trial, port.name) != nullptr) {
      numbers.push_back(data::load_port(port, prepared.host[i].bytes));
      given.push_back({.port = port.name, .value = numbers.back().span(), .dtype = port.dtype});
    }
  }
  const bool is_whole = given.size() == values.outputs.size();
  return is_whole || given.empty()
             ? std::vector<op::Settled>()
             : reference.settle({&trial.c.params, prepared.rounding->operands, &values, given, &made.group->sample});
}

}  // namespace

SharedBytes given_bytes(const Subject& subject, const Trial& trial, std::string_view port) {
  if (const auto stored = trial.stored.find(port); stored != trial.stored.end()) {
    return stored->second;
  }
  const auto found = subject.outputs.find(port);
  return found == subject.outputs.end() ? nullptr : found->second;
}

void fill_in_others(const Subject& subject, const Trial& trial, prepare::PreparedGroup& made,
                    const op::Values& values) {
  prepare::PreparedCase& prepared = made.cases.front();
  const std::vector<op::Settled> settled = settled_by_given(subject, trial, made, values);
  for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
    const op::Port& port = prepared.ports[i];
    if (worker::use_of(port) == worker::BlockUse::output && given_bytes(subject, trial, port.name) == nullptr) {
      fill_in(prepared, port, values, settled, prepared.host[i].bytes);
    }
  }
}

}  // namespace numcheck::diagnose
