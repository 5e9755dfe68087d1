// What is diagnosed: somebody's tensors, taken for the inputs and outputs of one case.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "diagnose/reference_memo.hpp"
#include "diagnose/simulator.hpp"
#include "machine/device.hpp"
#include "metric/pair_tolerance.hpp"
#include "model/declared_rounding.hpp"
#include "model/error_model.hpp"
#include "op/reference.hpp"
#include "plan/case.hpp"
#include "prepare/catalog.hpp"
#include "prepare/given_inputs.hpp"
#include "verdict/record.hpp"

namespace numcheck::diagnose {

/// Elements of outputs, dense and row-major, in the format of their port, by port. Those that are missing are not judged.
using SharedBytes = std::shared_ptr<const core::Buffer<std::byte>>;
using GivenOutputs = std::map<std::string, SharedBytes, std::less<>>;

struct Trial;

/// An input that nothing but the tensors tells. Saved statistics follow from other inputs, and scales of what exists only inside
/// kernels are usual numbers; lengths and masks, which a run would derive, are the caller's.
[[nodiscard]] inline bool must_be_given(const op::Port& port) {
  return port.role == op::Role::input && (port.fill != op::Fill::computed || core::is_integer(port.dtype));
}

/// What the run that left the outputs did besides. Of somebody's tensors nothing is known.
struct Conduct {
  bool guards_intact = true;  ///< nothing was written outside the tensors
  bool inputs_intact = true;
  bool repeats = true;      ///< every repetition had the same bits, or need not
  std::string detail = {};  ///< which guard or input was hit, and where
};

/// What else is known of that run.
struct Ran {
  model::DeclaredRounding rounding = {};  ///< that its backend declares
  /// What the operands of a product were seen to be converted to, if the mode may be computed like that.
  std::optional<model::PrecisionClass> observed = {};
  std::optional<model::Conversion> conversion = {};
  std::optional<plan::InputSpec> drawn = {};  ///< the distributions of the inputs
};

struct Subject {
  prepare::Catalog catalog;
  plan::Case c;  ///< op, mode and parameters, without padding; the distributions are like those of the inputs
  prepare::GivenInputs inputs;
  GivenOutputs outputs;
  machine::Device device;  ///< that the outputs came from: its architecture decides what an FP8 product may err
  std::shared_ptr<const Simulator> simulator = {};  ///< of such a device; may be null
  /// A first cause that is taken for granted while a second one is looked for; may be null. The case and the inputs are as
  /// it says.
  std::shared_ptr<const Trial> known = {};
  std::shared_ptr<const plan::Case> declared = {};  ///< the case before that cause; null without one
  Conduct conduct = {};
  Ran ran = {};
  std::shared_ptr<ReferenceMemo> memo = std::make_shared<ReferenceMemo>();
};

/// One way in which the outputs may have been computed.
struct Trial {
  plan::Case c;
  prepare::GivenInputs inputs;
  /// How the operands of a product were converted, if the trial says so; otherwise as the mode requests. The inputs are
  /// converted already.
  std::optional<model::PrecisionClass> ran = {};
  std::optional<model::Conversion> conversion = {};
  bool is_unconverted = false;            ///< the inputs are not converted yet
  model::DeclaredRounding rounding = {};  ///< what the run would have declared
  /// Applied to what the reference expects, and to its yardsticks, if it has any. After that of the known cause.
  std::function<void(op::Values&, op::Yardsticks&)> then = {};
  /// Gives the values of outputs instead of the reference, which then gives only what they may err; may be empty.
  std::function<op::Values(const op::ReferenceRequest&)> instead = {};
  /// Gives the values of outputs, too: the simulated device with this fault, or, if it is empty, without one. Nothing: the
  /// reference does.
  std::optional<std::string_view> fault = {};
  /// Outputs that take the place of those given: the same numbers in another format.
  GivenOutputs stored = {};
};

/// The numbers of a given output, dense and row-major.
[[nodiscard]] core::Buffer<double> delivered_numbers(const Subject& subject, std::string_view port);

/// That codes of an output were multiplied by before they were rounded; 1 if it has no scale.
[[nodiscard]] double output_scale(const Subject& subject, std::string_view port);

/// The trial that says that everything is as the case says, apart from the known cause.
[[nodiscard]] Trial as_declared(const Subject& subject);

/// The subject in which that trial is the known cause.
[[nodiscard]] Subject with_known(const Subject& subject, const Trial& trial);

/// What the reference makes of the trial: of products of more operations than the limit, a sample, whose elements are those
/// of every trial with that output.
struct Expected {
  op::Sample sample;
  std::shared_ptr<const op::Values> values;
};
[[nodiscard]] Expected expect(const Subject& subject, const Trial& trial, double flops_limit);

/// Judges the given outputs as if they were those of the trial; references of more operations than the limit cover a
/// sample of the outputs. `elements`, if not null, receives facts about the elements of each given output. Throws core::Error
/// if the trial cannot be computed.
struct ElementFacts {
  std::vector<std::uint8_t> is_wrong;  ///< by themselves: metric::mark_wrong, or no draw could have left them
  std::optional<metric::PairTolerance> tolerance;  ///< that two right results keep
  std::vector<double> possible;  ///< of what is drawn: what might be in its wrong elements; otherwise empty
};
using FactsByPort = std::map<std::string, ElementFacts, std::less<>>;
enum class Depth {
  gates,
  all,       ///< certificates, and what the op itself says of a failure
  pictures,  ///< that, and pictures of outputs that pass, too
};
[[nodiscard]] verdict::RunResult judge(const Subject& subject, const Trial& trial, double flops_limit, Depth depth,
                                       FactsByPort* elements = nullptr);

}  // namespace numcheck::diagnose
