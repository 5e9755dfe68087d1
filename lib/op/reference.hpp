// What an op's reference provides: values in double, and the yardsticks by which errors are judged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "core/dtype.hpp"
#include "op/op.hpp"
#include "op/replay.hpp"
#include "op/series.hpp"
#include "op/value.hpp"

namespace numcheck::op {

/// One input as the reference sees it: dense, row-major, logical shape of the port, decoded to double. For a scaled
/// operand these are the codes' values; the dequantisation factor is in `scale`.
struct Operand {
  std::string_view port;
  const double* data = nullptr;
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  double scale = 1;  ///< value = data * scale
  /// Format that holds the values; only for ops that define a rounding point in the tensor's own format, and for what
  /// attention rounds to it (weights and gradients of scores).
  core::Dtype dtype = core::Dtype::fp32;

  [[nodiscard]] std::size_t elements() const noexcept { return static_cast<std::size_t>(batch * rows * cols); }
};

/// Which outputs are referenced: all, or a sorted list of flat element indices of the main output. Only references with
/// yardsticks of their own are asked for a sample.
struct Sample {
  std::vector<std::int64_t> indices;
  [[nodiscard]] bool all() const noexcept { return indices.empty(); }
};

/// A case with several passes (Op::passes) has outputs that are passed on. If `inputs` has them, too, they are what earlier
/// passes have left, and the last pass's outputs for them are requested; otherwise all outputs, of the reference's own
/// passes.
struct ReferenceRequest {
  const Params* params = nullptr;
  std::vector<Operand> inputs;
  Sample sample;
  bool values_only = false;  ///< yardsticks are not wanted: magnitude, deviation and ideal may stay empty
  /// These are some rows of a case (Reference::on_rows): outputs that it does not have are not wanted. Otherwise the values are for
  /// all cases that differ in what is stored only.
  bool some_rows = false;
};

/// The operand with that name, or null.
[[nodiscard]] const Operand* find_operand(std::span<const Operand> operands, std::string_view name) noexcept;

/// The operand with that name; throws core::InternalError if there is none.
[[nodiscard]] const Operand& operand_named(std::span<const Operand> operands, std::string_view name);

/// Values of one output port. With a sample, element i belongs to sample.indices[i]. Dense otherwise.
struct OutputValues {
  std::string_view port;
  core::Buffer<double> value;
  /// Of tracked references (Reference::yardsticks is null), per element, before the output is rounded or scaled:
  /// magnitude = B, the deterministic bound on |error|; deviation = sqrt(V), V the predicted square of the error: FP32
  /// holds the root wherever it holds the value, and the square of neither small nor large ones. An infinite B says that
  /// the element is not determined (it may overflow in one order). Empty for bit_exact ports.
  core::Buffer<float> magnitude;
  core::Buffer<float> deviation;
  /// A of tracked references, per element: the sum of the magnitudes of the terms of y, with which errors can be compared
  /// where terms cancel, and how many terms there are. Reported, never judged; empty: y is not a sum, or its error model has
  /// them.
  core::Buffer<float> terms;
  double term_count = 1;
  /// True if the op defines this output bit for bit: every correct device stores RN(value). (Moves, masks, codes.)
  bool bit_exact = false;
  /// True if the device chooses the values itself (random bits): only Reference::findings judge them.
  bool unpredictable = false;
  /// True if the op may have zeros everywhere in this output although its inputs are anything but degenerate (gradients of
  /// queries that see one key each). Then it is judged like any other, and the op's other outputs tell whether passing
  /// proves something.
  bool may_vanish = false;
  /// The result of exact real arithmetic, where the op as implemented rounds in between (a scale rounded to the
  /// tensor's format); empty if that is `value`. Reported alongside the verdict, never judged.
  core::Buffer<double> ideal;
  std::string ideal_note;  ///< "the scale 0.13 is rounded to bf16: 0.129883"
  double reduction = 1;    ///< terms of the sum behind one element; see tolerance::ErrorModel::reduction
  /// z per element where y = f(z) and f, which is applied last, is flat in places: see model::ErrorModel. Otherwise
  /// empty.
  core::Buffer<float> argument;
  /// Of ops whose bound is no multiple of one magnitude: what their error model has to know of each row, in an order of
  /// its own (attention: tolerance::AttentionFact).
  std::vector<core::Buffer<float>> row_facts;
  /// Elements [begin, end), by flat index, that the op leaves to the implementation: even whether they are written. Their
  /// value is 0.
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::vector<Range> outside;
  /// Elements [begin, end), by flat index, in whose rows or columns FP32 sums may overflow, or scores are tied: `value` is
  /// right unless they do, or one way, and Reference::settle says what else may be.
  std::vector<Range> open;
};

struct Values {
  std::vector<OutputValues> outputs;
};

/// Yardsticks of one output port, as the error model of the op uses them. For GEMM:
///   magnitude  A = |alpha| sum |a b| + |beta c| + |bias|, times max(1, |f'|) of the epilogue
///   deviation  sqrt(S2), S2 = alpha^2 sum (a b)^2, times f'^2
/// Both come from sums in FP32 on the unrounded inputs, inflated by (1 + k 2^-24) so that they never fall short.
struct OutputYardsticks {
  std::string_view port;
  core::Buffer<float> magnitude;
  core::Buffer<float> deviation;
};

struct Yardsticks {
  std::vector<OutputYardsticks> outputs;
};

/// What a derived input is computed from.
struct DeriveRequest {
  const Params* params = nullptr;
  std::span<const Operand> inputs;  ///< the generated inputs, then the derived ones before this one
  const Port* port = nullptr;       ///< which one to derive
};

/// One output as a device delivered it, decoded and divided by its quantising scale.
struct Delivered {
  std::string_view port;
  std::span<const double> value;
  core::Dtype dtype = core::Dtype::fp32;   ///< format that it was stored in
  double scale = 1;                        ///< its quantising scale: value = stored number / scale
  std::span<const std::size_t> unwritten;  ///< elements that still hold the poison pattern, in ascending order
};

/// A statistic that explains, or a gate in its own right: a row-pooled scale error, a count per row.
struct Finding {
  std::string name;     ///< "row scale error"
  std::string port;     ///< the output it is about
  double measured = 0;  ///< of a diagnosis with a cause: the share of the error that it explains
  double limit = std::numeric_limits<double>::infinity();  ///< finite: a gate, measured <= limit
  std::string text;                                        ///< what it means, one sentence; may be empty
  std::string cause;  ///< of a diagnosis: what is wrong, in words that equal faults share; may be empty
  std::string fake;   ///< of a gate: a wrong result that would also pass it, and all the others; may be empty
  /// What a cause explains: errors of numbers; NaN and infinities in the wrong places; the same where some of them are
  /// elements that were not written; or that repeated runs differ.
  enum class About : std::uint8_t { numbers, pattern, unwritten, repetition } about = About::numbers;
  Series series = {};  ///< the statistic step by step, where the case has steps
};

/// An element of an unpredictable output that is wrong whatever was drawn.
struct ImpossibleDraw {
  std::string_view port;
  std::size_t element = 0;  ///< flat index
  double possible = 0;      ///< what it might hold
};

/// A gate that only some ops have: the name of its findings, and what it asks.
struct OwnGate {
  std::string_view name;
  std::string_view doc;
};

/// An element that is right in another way than `expected` says.
struct Settled {
  std::size_t output = 0;   ///< index in Values::outputs
  std::size_t element = 0;  ///< flat index
  bool asked = true;        ///< false: the device may leave anything; never of bit_exact outputs
  double value = 0, magnitude = 0, deviation = 0;
};

struct FindingRequest {
  const Params* params = nullptr;
  std::span<const Operand> inputs;
  const Values* expected = nullptr;
  std::span<const Delivered> outputs;
  const Sample* sample = nullptr;  ///< what `expected` holds of the main output
  std::string_view about = {};     ///< the one output whose findings are wanted, others may be left out; empty: all
};

/// Findings of an op whose rows do not know of each other, made of some rows at a time.
class RowFindings {
 public:
  RowFindings() = default;
  RowFindings(const RowFindings&) = delete;
  RowFindings& operator=(const RowFindings&) = delete;
  virtual ~RowFindings() = default;

  /// A case of these rows alone, the first of which is `first` of all. Called by several threads, once for every row.
  virtual void add(const FindingRequest& rows, std::int64_t first) = 0;
  /// After all rows have been added. `all`: the case with all its rows, if they are there; null: what only they could show is
  /// left as it is, and no gate passes because of that.
  [[nodiscard]] virtual std::vector<Finding> result(const FindingRequest* all) const = 0;
};

/// The main output of a run, all of it, where only a sample of it is expected.
struct WholeOutput {
  static constexpr std::int64_t kBlock = 256;  ///< columns of a block; the last one of a row may have fewer

  std::int64_t rows = 0;  ///< of all matrices of the batch
  std::int64_t cols = 0;
  /// Decodes a row, without its scale. Called once per row, by several threads at a time.
  std::function<void(std::int64_t row, std::span<double> values)> read;

  [[nodiscard]] std::int64_t blocks() const noexcept { return (cols + kBlock - 1) / kBlock; }
};

/// For every block of every row the sums over its columns j, with random signs r and S2 as in Yardsticks:
struct Projection {
  std::vector<double> error;   ///< sum r_j (d_j - y_j)
  std::vector<double> second;  ///< sum S2_j
};

/// A mistake in a formula that kernels are known to make, and that some inputs do not show.
struct Mistake {
  std::string name;                    ///< "epsilon_x10"
  std::string text;                    ///< "epsilon from ten times epsilon", as in: cannot tell ...
  Params params;                       ///< with these, the reference gives the wrong result
  double (*then)(double y) = nullptr;  ///< applied to it last; null: nothing
  Values (*instead)(const ReferenceRequest&) =
      nullptr;               ///< gives it; null: the reference. Inputs: unpredictable outputs, too
  bool of_all_rows = false;  ///< some of them do not show it: the largest magnitude
};

/// The entry points of an op's reference. `values` is called once per distinct rounding of the inputs, `yardsticks`
/// once per shape and distribution. All run on core::parallel_for.
struct Reference {
  Values (*values)(const ReferenceRequest&) = nullptr;
  /// Null for tracked references: there `values` yields value, bound and variance in one pass, on the rounded inputs.
  Yardsticks (*yardsticks)(const ReferenceRequest&) = nullptr;
  std::string_view version;  ///< part of every cache key; change it whenever numbers change
  /// Checks the whole main output of a large exact-leg case (all elements, dense, unscaled) without a full reference;
  /// null if the op has no such check.
  bool (*exact_holds)(const ReferenceRequest&, std::span<const double> output) = nullptr;
  /// Where only a sample is expected: a linear check of all elements, at a cost of 1 / WholeOutput::kBlock of the product.
  /// Errors add up like random numbers, whatever they are, because the signs are random. Null if the op has none; nothing
  /// if it does not hold for the case (an epilogue that is not linear, operands that are not finite).
  std::optional<Projection> (*project)(const ReferenceRequest&, const WholeOutput&) = nullptr;
  /// Fills a derived input. On entry `values` holds draws from the port's distribution. Called for the unrounded inputs
  /// and for every rounding; the result is rounded to the port's format like any input. Null: no derived inputs.
  void (*derive)(const DeriveRequest&, std::span<double> values) = nullptr;
  /// Further statistics of a run; null: none.
  std::vector<Finding> (*findings)(const FindingRequest&) = nullptr;
  /// The same of rows that are not all there at a time; null where `findings` needs them all, or is null itself.
  std::unique_ptr<RowFindings> (*row_findings)(const Params&, const Mode&) = nullptr;
  /// Which elements of unpredictable outputs no draw could have left; called only to explain a failure. Null: any could.
  std::vector<ImpossibleDraw> (*impossible)(const FindingRequest&) = nullptr;
  /// Which of the open elements are not as `expected` says, as all outputs together show; null if the op has no open ones.
  std::vector<Settled> (*settle)(const FindingRequest&) = nullptr;
  /// Mistakes that the verdict's certificate plants in outputs. Their results have these outputs' shapes. Null: none.
  std::vector<Mistake> (*mistakes)(const Params&, const Mode&) = nullptr;
  /// Of an op whose rows do not know of each other: the parameters of the same op on so many rows. Its inputs and outputs have a
  /// row each, or are shared by all rows. Nothing if rows depend on their numbers (a causal mask); null if they always do.
  std::optional<Params> (*on_rows)(const Params&, std::int64_t rows) = nullptr;
  /// Then an output that is one number of all rows is the largest of those of some rows, and what derive() gives knows only amaxes.
  bool largest_of_parts = false;
  /// Of ops that move bits: which element of the first input each element of the first output is.
  std::vector<std::int64_t> (*moved)(const ReferenceRequest&) = nullptr;
  std::span<const OwnGate> gates;  ///< those of `findings`: every one with a limit is of these
  /// What may explain an output that failed a gate; called only then, and never a gate itself. Null: nothing.
  std::vector<Finding> (*diagnose)(const FindingRequest&) = nullptr;
  /// Whether the bits of the main output show roundings that the run declares. Null: the op's are not known bit for bit.
  Replay (*replay)(const ReplayRequest&) = nullptr;

  /// True if every output is bit_exact or unpredictable, whatever the parameters: there is nothing to bound.
  bool defines_bits = false;

  [[nodiscard]] bool tracked() const noexcept { return yardsticks == nullptr; }
};

}  // namespace numcheck::op
