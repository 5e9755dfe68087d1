#include "prepare/row_operands.hpp"

#include <algorithm>

#include "core/codec.hpp"
#include "data/inputs.hpp"

namespace numcheck::prepare {
namespace {

/// Rows of all matrices lie one after the other, without gaps.
bool is_one_run(const op::Port& port) {
  return port.is_dense() || (port.ld == port.cols && port.batch == 1);
}

void decode_rows(const PackedOperand& from, std::int64_t first, std::int64_t count, std::span<double> values) {
  const op::Port& port = from.port;
  const auto cols = static_cast<std::size_t>(port.cols);
  if (!is_one_run(port)) {
    for (std::int64_t r = 0; r < count; ++r) {
      data::load_row(port, from.bytes, first + r, values.subspan(static_cast<std::size_t>(r) * cols, cols));
    }
    return;
  }
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const auto at = static_cast<std::size_t>(port.offset_bytes) + static_cast<std::size_t>(first) * cols * element;
  core::decode(from.bytes.subspan(at, values.size() * element), port.dtype, values);
}

}  // namespace

op::Port as_fp32(op::Port port) {
  port.dtype = core::Dtype::fp32;
  port.ld = port.cols;
  port.batch_stride = port.rows * port.cols;
  port.offset_bytes = 0;
  return port;
}

std::vector<op::Operand> RowOperands::of(std::int64_t first, std::int64_t count, Copies& copies) const {
  std::vector<op::Operand> some = operands_;
  for (std::size_t i = 0; i < some.size(); ++i) {
    op::Operand& operand = some[i];
    if (!has_rows(operand)) {
      continue;
    }
    if (packed_[i].empty()) {
      operand.data += first * operand.cols;
    } else {
      core::Buffer<double>& copy = copies.emplace_back(static_cast<std::size_t>(count * operand.cols));
      decode_rows(packed_[i], first, count, copy.span());
      operand.data = copy.data();
    }
    operand.batch = 1;
    operand.rows = count;
  }
  return some;
}

std::vector<op::Operand> RowOperands::picked(std::span<const std::int64_t> rows, Copies& copies) const {
  std::vector<op::Operand> some = operands_;
  for (std::size_t i = 0; i < some.size(); ++i) {
    op::Operand& operand = some[i];
    if (!has_rows(operand)) {
      continue;
    }
    const auto cols = static_cast<std::size_t>(operand.cols);
    core::Buffer<double>& copy = copies.emplace_back(rows.size() * cols);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::span<double> to = copy.span().subspan(r * cols, cols);
      if (packed_[i].empty()) {
        std::copy_n(operand.data + rows[r] * operand.cols, cols, to.begin());
      } else {
        decode_rows(packed_[i], rows[r], 1, to);
      }
    }
    operand.data = copy.data();
    operand.batch = 1;
    operand.rows = static_cast<std::int64_t>(rows.size());
  }
  return some;
}

void RowOperands::fill(std::vector<op::Operand>& operands, std::vector<SharedDoubles>& owners) const {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!packed_[i].empty()) {
      owners.push_back(
          std::make_shared<const core::Buffer<double>>(data::load_port(packed_[i].port, packed_[i].bytes)));
      operands[i].data = owners.back()->data();  // nothing else: other threads read the rest
    }
  }
}

void RowOperands::empty(std::vector<op::Operand>& operands, std::vector<SharedDoubles>& owners) const {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    operands[i].data = operands_[i].data;
  }
  owners.resize(operands.size());
}

}  // namespace numcheck::prepare
