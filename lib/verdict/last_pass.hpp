// Cases that run several ops one after another on the device (op::Op::passes): what the last one is judged by.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/buffer.hpp"
#include "op/reference.hpp"
#include "prepare/group.hpp"
#include "verdict/record.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// What a run's earlier passes left, and what the last one should have made of it. Its own errors are those against
/// `values`; those against the reference's outputs of the whole case include what the earlier passes cost.
///
/// The outputs of the whole case are prepare::Rounding::values, unless a pass chooses what it leaves (a dropout mask): then
/// these have the chosen outputs only, and `given_choice` has the others.
struct LastPass {
  std::vector<core::Buffer<double>> passed_on;     ///< decoded
  std::vector<op::Operand> inputs;                 ///< those of the case, then what was passed on
  std::string key;                                 ///< equal if what was passed on has the same bits
  std::shared_ptr<const op::Values> values;        ///< the last pass's outputs for these inputs
  std::shared_ptr<const op::Values> given_choice;  ///< null if nothing is chosen

  /// An output of the whole case, by what the reference's own passes leave; null if the last pass reads nothing but what
  /// was chosen.
  [[nodiscard]] const op::OutputValues* own(const op::Values& of_case, std::string_view port) const;
};

/// Decodes what was passed on; the values are still missing. Nothing if the case has one pass.
[[nodiscard]] std::shared_ptr<LastPass> passed_on_by(const prepare::PreparedCase& prepared,
                                                     std::span<const worker::HostPort> host,
                                                     const worker::RunReport& run);

/// The op that leaves a port for the last pass; the last one itself for other ports.
[[nodiscard]] const op::Op& pass_of(const plan::Case& c, const op::Port& port);

/// True if the reference does not know what a pass leaves in this port.
[[nodiscard]] bool is_chosen(const prepare::PreparedCase& prepared, const op::Port& port);

/// OutputResult::ideal_note of the last pass's outputs: "with the reference's own o and lse instead of the device's".
[[nodiscard]] std::string own_passes_note(const prepare::PreparedCase& prepared);

/// Names the errors of an output of the last pass: its own, and that of all passes, against `ideal`. Of what is passed on it
/// says which pass left it.
[[nodiscard]] op::Finding pass_finding(const plan::Case& c, const OutputResult& output);

}  // namespace numcheck::verdict
