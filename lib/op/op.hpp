// The op descriptor: pure data and shape algebra. Decoder, schema, identifier, `explain` and the buffers follow from
// it.
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
  amax,  ///< an output holding max|.| of another output before scaling; zeroed, not poisoned, before the run
};

/// One named tensor of an op: where each element lies in memory. Row-major; elements of a row are contiguous.
/// Element (b, r, c) lies at offset_bytes + (b * batch_stride + r * ld + c) * storage bytes.
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
  std::string_view of;            ///< roles scale and amax: the port that they describe
  std::string_view doc;

  /// Logical elements: batch * rows * cols.
  [[nodiscard]] std::int64_t elements() const noexcept { return batch * rows * cols; }
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

struct Op {
  std::string_view name;
  std::string_view summary;
  std::string_view formula;
  std::string_view source;
  const std::vector<Field>& (*fields)();
  std::span<const std::string_view> modes;
  /// All ports, inputs first, in the order of documentation. Precondition: check() is empty.
  std::vector<Port> (*ports)(const Params&, const Mode&);
  /// Cross-field mistakes of a plan ("ld_a is smaller than a row"), as sentences; empty if the combination is legal.
  std::vector<std::string> (*check)(const Params&, const Mode&);
  /// Integers for the exact leg in this mode.
  ExactPlan (*exact_plan)(const Params&, const Mode&);
  /// Floating-point operations of one run, for ordering, budgets and sampling.
  double (*flops)(const Params&);
  /// True if the reduction runs along the rows of this stored input (A with trans_a, B without trans_b).
  bool (*reduces_along_rows)(const Params&, std::string_view port);
};

/// Position of a field, by name; nothing if there is none.
[[nodiscard]] std::optional<std::size_t> field_index(const Op& op, std::string_view name);

/// The port of that name; throws InternalError if there is none.
[[nodiscard]] const Port& port_named(std::span<const Port> ports, std::string_view name);

}  // namespace numcheck::op
