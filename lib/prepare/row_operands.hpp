// Operands of ops whose rows are independent: large ones stay as devices store them, and are decoded where rows are needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "core/parallel.hpp"
#include "op/op.hpp"
#include "op/reference.hpp"
#include "prepare/given_inputs.hpp"

namespace numcheck::prepare {

/// The bytes of a port that holds exactly the operand's numbers.
struct PackedOperand {
  op::Port port;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;

  [[nodiscard]] bool empty() const noexcept { return bytes.empty(); }
};

/// The port of the same elements in FP32, one after the other.
[[nodiscard]] op::Port as_fp32(op::Port port);

/// Calls body(first, count) for parts of all rows of an output, in parallel.
template <class Body>
void for_each_rows(const op::Port& main, const Body& body) {
  constexpr std::int64_t kElements = std::int64_t{1} << 15;
  const auto at_once = static_cast<std::size_t>(std::max<std::int64_t>(1, kElements / main.cols));
  core::parallel_chunks(static_cast<std::size_t>(main.batch * main.rows), at_once,
                        [&](std::size_t, std::size_t begin, std::size_t end) {
                          body(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin));
                        });
}

class RowOperands {
 public:
  /// `packed` is parallel to `operands`, whose numbers are those that are not packed; operands of `rows` rows are cut, others are
  /// shared by all rows.
  RowOperands(std::vector<op::Operand> operands, std::vector<PackedOperand> packed, std::int64_t rows)
      : operands_(std::move(operands)), packed_(std::move(packed)), rows_(rows) {}

  using Copies = std::vector<core::Buffer<double>>;

  /// Rows [first, first + count), as operands of so many rows; `copies` owns what was decoded.
  [[nodiscard]] std::vector<op::Operand> of(std::int64_t first, std::int64_t count, Copies& copies) const;
  /// Some rows, one after the other.
  [[nodiscard]] std::vector<op::Operand> picked(std::span<const std::int64_t> rows, Copies& copies) const;
  /// Gives the operands that were passed to the constructor the numbers of all rows, which are added to their owners; and takes
  /// these away again.
  void fill(std::vector<op::Operand>& operands, std::vector<SharedDoubles>& owners) const;
  void empty(std::vector<op::Operand>& operands, std::vector<SharedDoubles>& owners) const;

 private:
  [[nodiscard]] bool has_rows(const op::Operand& operand) const { return operand.batch * operand.rows == rows_; }

  std::vector<op::Operand> operands_;
  std::vector<PackedOperand> packed_;
  std::int64_t rows_;
};

}  // namespace numcheck::prepare
