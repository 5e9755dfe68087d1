#include "verdict/sampled_elements.hpp"

#include <algorithm>
#include <vector>

#include "core/codec.hpp"

namespace numcheck::verdict {
namespace {

constexpr std::int64_t kPieces = 16, kPiece = 4096;

std::size_t offset_of(const op::Port& port, std::int64_t index) {
  const std::int64_t row = index / port.cols, column = index % port.cols;
  const std::int64_t element = row / port.rows * port.batch_stride + row % port.rows * port.ld + column;
  return static_cast<std::size_t>(port.offset_bytes + element * core::dtype_info(port.dtype).storage_bytes);
}

/// Elements [begin, end) by flat index, a row's share at a time.
void use_piece(const op::Port& port, std::span<const std::byte> bytes, std::int64_t begin, std::int64_t end,
               std::vector<double>& values, const std::function<void(double, std::int64_t)>& use) {
  const auto width = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t stop = std::min(end, (at / port.cols + 1) * port.cols);
    values.resize(static_cast<std::size_t>(stop - at));
    core::decode(bytes.subspan(offset_of(port, at), values.size() * width), port.dtype, values);
    for (const double value : values) {
      use(value, at++);
    }
  }
}

}  // namespace

void for_sampled_elements(const op::Port& port, std::span<const std::byte> bytes,
                          const std::function<void(double value, std::int64_t index)>& use) {
  const std::int64_t count = port.elements();
  std::vector<double> values;
  if (count <= kPieces * kPiece) {
    use_piece(port, bytes, 0, count, values, use);
    return;
  }
  for (std::int64_t piece = 0; piece < kPieces; ++piece) {
    const std::int64_t begin = (count - kPiece) / (kPieces - 1) * piece;
    const bool is_last = piece == kPieces - 1;
    use_piece(port, bytes, is_last ? count - kPiece : begin, is_last ? count : begin + kPiece, values, use);
  }
}

}  // namespace numcheck::verdict
