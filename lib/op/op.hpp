// The op descriptor: pure data and shape algebra. Decoder, schema, identifier, `explain` and buffers derive from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "op/mode.hpp"
#include "op/value.hpp"

namespace numcheck::op {

enum class Role : std::uint8_t {
  input,  ///< generated, rounded once to the port's format
  scale,  ///< one FP32 number that the scaling recipe derives from other ports (scale_inv of an operand, ...)
  output,
  amax,  ///< an output: max|.| of another port (of an output: before scaling); zeroed, not poisoned, before the run
};

/// Where an input's values come from.
enum class Fill : std::uint8_t {
  generated,  ///< drawn from the case's distribution
  derived,  ///< computed by op::Reference::derive from draws of its own (a mask), maybe from the generated inputs as well
  computed,  ///< computed by it from parameters and other inputs alone (lengths, saved statistics): it has no distribution
};

/// One named tensor of an op: where each element is in memory. Row-major; elements of a row are contiguous.
/// Element (b, r, c) is at offset_bytes + (b * batch_stride + r * ld + c) * storage bytes.
struct Port {
  std::string_view name;
  Role role = Role::input;
  core::Dtype dtype = core::Dtype::fp32;
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  std::int64_t ld = 1;            ///< elements between rows, >= cols
  std::int64_t batch_stride = 1;  ///< elements between matrices, >= rows * ld
  std::int64_t offset_bytes = 0;  ///< deliberate misalignment of the first element
  /// Scale, amax: the port that they describe; input: the one output that reads it, or empty; output: the one whose codes it holds
  /// in another order, or empty.
  std::string_view of;
  Fill fill = Fill::generated;  ///< role input
  std::string_view doc;
  /// The port that holds the scales of this one, empty if there is none: one scale per block of
  /// block_rows x block_cols elements (smaller at the edges), value = code * scale.
  std::string_view scaled_by;
  std::int64_t block_rows = 1;
  std::int64_t block_cols = 1;
  /// Equal parts of each row that are computed from different operands, as the heads of attention; 0 if a row is one thing.
  std::int64_t heads = 0;
  bool passed_on = false;  ///< role output: of an earlier pass (Op::passes), and read by the last one

  /// Logical elements: batch * rows * cols.
  [[nodiscard]] std::int64_t elements() const noexcept { return batch * rows * cols; }
  /// False for inputs that op::Reference::derive makes.
  [[nodiscard]] bool is_generated() const noexcept { return fill == Fill::generated; }
  /// True for inputs that a plan may give a distribution of their own.
  [[nodiscard]] bool has_distribution() const noexcept { return role == Role::input && fill != Fill::computed; }
  /// Bytes from the start of the buffer to the end of the last element's row, 0 if there are no elements.
  [[nodiscard]] std::size_t extent_bytes() const noexcept;
  [[nodiscard]] bool is_dense() const noexcept { return ld == cols && batch_stride == rows * ld; }
};

/// How the exact leg chooses integers (trust.md section 1): values of `first` are +-1..max_first with one non-zero in
/// every `stride` consecutive elements along the reduction, `second` is dense in +-1..max_second, so that the sum of
/// all |products| stays within the accumulator and the output significand in any order.
struct ExactPlan {
  std::int64_t max_first = 1;
  std::int64_t max_second = 1;
  std::int64_t stride = 1;
  std::int64_t max_addend = 1;  ///< other inputs (C, bias) are dense in +-1..max_addend
  bool positive = false;        ///< the second form for promoted FP8: positive integers 4..15
  std::string reason;           ///< why it cannot be exact; empty when it can
};

struct Op;

/// An op as a part of a case of another one.
struct Pass {
  const Op* op = nullptr;
  Params params;
};

struct Op {
  std::string_view name;
  std::string_view summary;
  std::string_view formula;
  std::string_view source;
  const std::vector<Field>& (*fields)();
  std::span<const std::string_view> modes;
  /// All ports, inputs first, in documentation order. Precondition: check() is empty.
  std::vector<Port> (*ports)(const Params&, const Mode&);
  /// Cross-field mistakes of a plan ("ld_a is smaller than a row"), as sentences; empty if the combination is legal.
  std::vector<std::string> (*check)(const Params&, const Mode&);
  /// Integers for the exact leg in this mode; its reason says why there is none.
  ExactPlan (*exact_plan)(const Params&, const Mode&) = nullptr;
  /// Turns the integers that exact_plan describes, drawn for one input, into the values of the exact leg, if
  /// there is one; null: they are the values.
  void (*exact_inputs)(const Params&, const Port&, std::span<double>) = nullptr;
  /// What a case runs on the device, one op after another, if its last pass reads what the others leave; null or empty:
  /// only the op itself. Ports of the passes are those of the case, by name: what an earlier pass leaves is an output of
  /// the case with Port::passed_on, and of the last pass an input.
  std::vector<Pass> (*passes)(const Params&) = nullptr;
  /// Floating-point operations of one run, for ordering, budgets and sampling.
  double (*flops)(const Params&) = nullptr;
  /// True if the reduction runs over the row index of this stored input (A with trans_a, B without trans_b); null:
  /// never.
  bool (*reduces_along_rows)(const Params&, std::string_view port) = nullptr;
  /// What the formula leaves out, as `explain` prints it: lines that end with a line break; may be empty.
  std::string_view rules = {};
  /// What the op measures besides errors (op::Finding without a limit), by name: a plan may set limits.
  std::span<const std::string_view> statistics = {};
  /// True if the op multiplies matrices, so that its precision class (FP32, TF32, ...) is a question. Other ops compute
  /// in FP32 whatever NVIDIA_TF32_OVERRIDE says.
  bool multiplies_matrices = false;
};

/// Op::passes of a case; empty if it runs only the op itself.
[[nodiscard]] std::vector<Pass> passes_of(const Op& op, const Params& params);

/// Position of a field, by name; nothing if there is none.
[[nodiscard]] std::optional<std::size_t> field_index(const Op& op, std::string_view name);

/// exact_plan of ops without products: integers small enough to be stored exactly. For ops whose every output is then
/// exact; others say with no_exact_leg() why they have no exact leg.
[[nodiscard]] ExactPlan small_integers(const Params&, const Mode&);

/// A plan that says why the op has no exact leg.
[[nodiscard]] ExactPlan no_exact_leg(std::string reason);

/// A dense matrix port: rows x cols in the format, without padding.
[[nodiscard]] Port dense_port(std::string_view name, Role role, core::Dtype dtype, std::int64_t rows, std::int64_t cols,
                              std::string_view doc);

/// One FP32 number that describes port `of`: roles scale and amax.
[[nodiscard]] Port scalar_port(std::string_view name, Role role, std::string_view of, std::string_view doc);

/// The port with that name, or null.
[[nodiscard]] const Port* find_port(std::span<const Port> ports, std::string_view name) noexcept;

/// The port with that name; throws InternalError if there is none.
[[nodiscard]] const Port& port_named(std::span<const Port> ports, std::string_view name);

}  // namespace numcheck::op
