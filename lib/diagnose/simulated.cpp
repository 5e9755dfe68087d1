// Hypotheses that a simulated device has: every fault that can be planted in it.
#include "diagnose/simulated.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <numbers>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "data/block_scales.hpp"
#include "data/inputs.hpp"
#include "diagnose/hypothesis.hpp"
#include "op/field.hpp"
#include "op/grouped_gemm.hpp"
#include "worker/workers.hpp"

namespace numcheck::diagnose {
namespace {

/// Of one run: what a simulated tensor core does in some tenths of a second, and a chain of FP32 operations in as many.
constexpr double kMostOfTensorCores = 2e8, kMostOfChains = 1e9;
constexpr std::int64_t kMostElements = std::int64_t{1} << 22;

/// The ports of a case in memory: its inputs, and outputs of their own.
class Memory {
 public:
  /// In full: outputs as numbers of FP32, before they are rounded to their formats.
  Memory(const prepare::PreparedCase& prepared, bool in_full) {
    for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
      op::Port& port = ports_.emplace_back(prepared.ports[i]);
      const bool is_output = worker::use_of(port) == worker::BlockUse::output;
      const bool has_numbers = !core::is_integer(port.dtype) && port.dtype != core::Dtype::e8m0;
      const bool is_plain = port.role == op::Role::output && port.scaled_by.empty() && has_numbers;
      if (is_output && is_plain && in_full) {
        port.dtype = core::Dtype::fp32;
      }
      std::byte* data = prepared.host[i].bytes.data();
      const bool is_scale = is_output_scale(port, prepared.ports);
      if (is_output || (is_scale && in_full)) {
        data = own_.emplace_back(port.extent_bytes()).data();
        std::ranges::fill(own_.back().span(), std::byte{0});
      }
      if (is_scale && in_full) {
        constexpr double kNone = 1;
        data::store_port(port, std::span(&kNone, 1), 1, own_.back().span());
      }
      memory_.push_back({&port, data});
    }
  }

  [[nodiscard]] std::span<const SimulatedPort> ports() const { return memory_; }

  /// The elements of an output, of blocks with their scales; none if there is no such output.
  [[nodiscard]] core::Buffer<double> numbers(std::string_view name) const {
    for (const SimulatedPort& memory : memory_) {
      const op::Port& port = *memory.port;
      if (port.name == name && port.role == op::Role::output) {
        core::Buffer<double> numbers = data::load_port(port, {memory.data, port.extent_bytes()});
        if (!port.scaled_by.empty()) {
          scale(port, numbers);
        }
        const double factor = factor_of(name);
        for (double& number : numbers.span()) {
          number /= factor;
        }
        return numbers;
      }
    }
    return core::Buffer<double>(0);
  }

 private:
  /// Codes times the scales of their blocks.
  void scale(const op::Port& port, core::Buffer<double>& numbers) const {
    const auto found =
        std::ranges::find_if(memory_, [&](const SimulatedPort& m) { return m.port->name == port.scaled_by; });
    if (found == memory_.end()) {
      throw core::InternalError("no port is named " + std::string(port.scaled_by));
    }
    const op::Port& scales = *found->port;
    const core::Buffer<double> factors = data::load_port(scales, {found->data, scales.extent_bytes()});
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] *= data::block_scale(port, factors.span(), i);
    }
  }

  /// That codes of the output were multiplied by.
  [[nodiscard]] double factor_of(std::string_view name) const {
    for (const SimulatedPort& memory : memory_) {
      const op::Port& port = *memory.port;
      if (port.role == op::Role::scale && port.of == name && port.elements() == 1) {
        return data::load_port(port, {memory.data, port.extent_bytes()})[0];
      }
    }
    return 1;
  }

  static bool is_output_scale(const op::Port& port, std::span<const op::Port> ports) {
    const op::Port* of = port.role == op::Role::scale ? op::find_port(ports, port.of) : nullptr;
    return of != nullptr && of->role == op::Role::output && port.elements() == 1;
  }

  std::deque<op::Port> ports_;
  std::deque<core::Buffer<std::byte>> own_;
  std::vector<SimulatedPort> memory_;
};

/// What the fault makes of the inputs: in full if it shows there, otherwise in the formats of the outputs.
Memory simulated(const Subject& subject, const Trial& trial, const prepare::PreparedCase& prepared) {
  // What an earlier pass leaves is read in the format that it has.
  const bool has_passes = !op::passes_of(*trial.c.op, trial.c.params).empty();
  for (const bool in_full : {true, false}) {
    Memory memory(prepared, in_full);
    if ((!in_full || !has_passes) && subject.simulator->run(trial.c, memory.ports(), *trial.fault)) {
      return memory;
    }
  }
  throw core::UsageError("this fault does not show in such a case");
}

void widen(core::Buffer<float>& errors, double factor) {
  for (float& error : errors.span()) {
    error = static_cast<float>(static_cast<double>(error) * factor);
  }
}

}  // namespace

bool can_simulate(const Subject& subject) {
  const plan::Case& c = subject.c;
  std::int64_t elements = 0;
  for (const op::Port& port : c.op->ports(c.params, *c.mode)) {
    elements += port.elements();
  }
  return subject.simulator != nullptr && elements <= kMostElements &&
         (c.op->flops == nullptr ||
          c.op->flops(c.params) <= (op::is_product(*c.op) ? kMostOfTensorCores : kMostOfChains));
}

void simulate(const Subject& subject, const Trial& trial, const prepare::PreparedCase& prepared, op::Values& values,
              op::Yardsticks& yardsticks) {
  if (!can_simulate(subject)) {
    throw core::UsageError("this case is too large to be simulated");
  }
  const Memory memory = simulated(subject, trial, prepared);
  for (op::OutputValues& output : values.outputs) {
    const core::Buffer<double> numbers = memory.numbers(output.port);
    if (numbers.size() != output.value.size()) {
      continue;
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      expect_instead(output, i, numbers[i]);
    }
    widen(output.magnitude, 2);
    widen(output.deviation, std::numbers::sqrt2);
    // A row may be that of the one beside it (a mask that is off by one), with errors of that size.
    for (core::Buffer<float>& fact : output.row_facts) {
      const std::vector<float> before(fact.span().begin(), fact.span().end());
      for (std::size_t row = 0; row < before.size(); ++row) {
        const std::size_t first = row == 0 ? 0 : row - 1, last = std::min(row + 2, before.size());
        fact[row] = *std::max_element(before.begin() + static_cast<std::ptrdiff_t>(first),
                                      before.begin() + static_cast<std::ptrdiff_t>(last));
      }
    }
  }
  for (op::OutputYardsticks& output : yardsticks.outputs) {
    widen(output.magnitude, 2);
    widen(output.deviation, std::numbers::sqrt2);
  }
}

namespace {

/// Faults that are, by definition, what a row of the catalogue computes in double: bits decide which of the two proves it, and the
/// name is the same.
struct SameAs {
  std::string_view fault, name;
};
constexpr std::array kSameAs = {
    SameAs{"missing_k_tail", "terms_left_out"},
    SameAs{"missing_k_tail_8", "terms_left_out"},
    SameAs{"missing_k_stage", "terms_left_out"},
    SameAs{"unreduced_split_k", "terms_left_out"},
    SameAs{"doubled_split_head", "terms_added_twice"},
    SameAs{"duplicated_k_block", "terms_added_twice"},
    SameAs{"stale_k_tail", "terms_replaced"},
    SameAs{"transposed_a", "a_transposed"},
    SameAs{"scale_half", "alpha=0.5"},
    SameAs{"scale_1_01", "alpha=1.01"},
    SameAs{"beta_ignored", "beta=0"},
    SameAs{"bf16_inputs", "operands_in_bf16"},
    SameAs{"tf32_silently", "operands_in_tf32"},
    SameAs{"output_scale_1_01", "output_scaled=1.01"},
    SameAs{"dq_not_zeroed", "output_scaled=2"},
    SameAs{"bf16_output_in_fp32", "output_in_bf16"},
    SameAs{"truncated_output", "output_truncated"},
    SameAs{"double_rounded_output", "output_through_fp16"},
    SameAs{"softmax_scale_missing", "scale=1"},
    SameAs{"softcap_missing", "softcap=0"},
    SameAs{"bf16_statistics", "statistics_in_bf16"},
    SameAs{"last_element_missing", "last_element_left_out"},
    SameAs{"previous_row_statistics", "statistics_of_row_before"},
    SameAs{"gamma_not_centred", "zero_centered_gamma=false"},
};

std::string_view name_of(std::string_view fault, const plan::Case& c) {
  const auto* const same = std::ranges::find(kSameAs, fault, &SameAs::fault);
  if (same != kSameAs.end()) {
    return same->name;
  }
  if (const std::optional<std::size_t> bias = op::field_index(*c.op, "bias"); bias && fault == "bias_after_scale") {
    return c.params[*bias] == op::Value(std::string("pre_scale")) ? "bias=post_scale" : "bias=pre_scale";
  }
  return fault;
}

std::vector<Hypothesis> simulated_faults(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  std::vector<Hypothesis> all;
  if (!can_simulate(subject) || !evidence.sample.all()) {
    return all;
  }
  for (const SimulatedFault& fault : subject.simulator->faults(subject.c)) {
    Trial trial = as_declared(subject);
    trial.fault = fault.name;
    all.push_back({std::string(name_of(fault.name, subject.c)),
                   {},
                   std::string(fault.doc),
                   fmt::format("Compare the code with the formula that te-numcheck explain {} shows; run --inject {} "
                               "shows what such a kernel gives for other shapes and inputs.",
                               subject.c.op->name, fault.name),
                   std::move(trial)});
  }
  return all;
}

constexpr std::array kRows = {CatalogueRow{"FAULT",
                                           "what a simulated device gives with each fault that can be planted in it: "
                                           "mask_off_by_one; those that are the same as "
                                           "another cause have its name: terms_left_out",
                                           &simulated_faults, Stage::simulated}};

}  // namespace

std::span<const CatalogueRow> simulated_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
