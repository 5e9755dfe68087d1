// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "reference/packed_kernels.hpp"

#include <cstdint>
#include <utility>

#include "reference/packed_vectors.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

template <class T>
constexpr std::size_t kPanel = kLanes<T> * kVectors;
/// Rows of a panel that are multiplied at a time: they stay in the first-level cache for all rows of the left, also where two
/// threads share it (12 KiB each).
constexpr std::size_t kDepth = 64;

/// A part of the product that fits in registers.
template <class T>
struct Block {
  SteppedMatrix<T> left;
  const T* panel;
  std::size_t depth, cols;
  T* out;
  std::ptrdiff_t out_stride;
  bool accumulate;
};

/// Multiply-adds that are put together make infinities, and numbers near them, NaN: such sums are formed once more without.
template <class T, int kBlockRows, int kBlockVectors>
void restore_infinities(const Block<T>& block, Vector<T> (&sums)[kBlockRows][kBlockVectors]) {
  for (int r = 0; r < kBlockRows; ++r) {
    for (std::size_t c = 0; c < kBlockVectors * kLanes<T>; ++c) {
      Vector<T>& vector = sums[r][c / kLanes<T>];
      const T given = vector[c % kLanes<T>];
      if (given == given) {
        continue;
      }
      T sum = 0;
      const T* left = block.left.data + r * block.left.row_step;
      for (std::size_t k = 0; k < block.depth; ++k, left += block.left.col_step) {
        sum += *left * block.panel[k * kBlockVectors * kLanes<T> + c];
      }
      vector[c % kLanes<T>] = sum;
    }
  }
}

template <class T, Products kProducts, int kBlockRows, int kBlockVectors>
void multiply_block(const Block<T>& block) {
  constexpr std::size_t kWidth = kBlockVectors * kLanes<T>;
  Vector<T> sums[kBlockRows][kBlockVectors] = {};
  const T* left = block.left.data;
  const T* panel = block.panel;
  const std::ptrdiff_t step = block.left.row_step;
  for (std::size_t k = 0; k < block.depth; ++k, left += block.left.col_step, panel += kWidth) {
    Vector<T> right[kBlockVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kBlockVectors; ++v) {
      load<T>(panel + static_cast<std::size_t>(v) * kLanes<T>, right[v]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kBlockRows; ++r) {
      const T factor = left[r * step];
#pragma GCC unroll 8
      for (int v = 0; v < kBlockVectors; ++v) {
        sums[r][v] = multiply_add<kProducts>(factor, right[v], sums[r][v]);
      }
    }
  }
  if constexpr (kProducts == Products::any && kLosesInfinities<T>) {
    restore_infinities<T, kBlockRows, kBlockVectors>(block, sums);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kBlockRows; ++r) {
    T* const out = block.out + r * block.out_stride;
    if (block.cols == kWidth) {
#pragma GCC unroll 8
      for (int v = 0; v < kBlockVectors; ++v) {
        Vector<T> before{};
        T* const at = out + static_cast<std::size_t>(v) * kLanes<T>;
        if (block.accumulate) {
          load<T>(at, before);
          sums[r][v] += before;
        }
        store<T>(sums[r][v], at);
      }
      continue;
    }
    T all[kWidth];
    __builtin_memcpy(all, &sums[r], sizeof(all));
    for (std::size_t c = 0; c < block.cols; ++c) {
      out[c] = block.accumulate ? out[c] + all[c] : all[c];
    }
  }
}

template <class T>
using BlockFunction = void (*)(const Block<T>& block);

/// For that many rows and vectors, each at least 1.
template <class T, Products kProducts, int kBlockRows = kRows, int kBlockVectors = kVectors>
BlockFunction<T> block_function(std::size_t rows, std::size_t vectors) {
  if constexpr (kBlockVectors > 1) {
    if (vectors < static_cast<std::size_t>(kBlockVectors)) {
      return block_function<T, kProducts, kBlockRows, kBlockVectors - 1>(rows, vectors);
    }
  }
  if constexpr (kBlockRows > 1) {
    if (rows < static_cast<std::size_t>(kBlockRows)) {
      return block_function<T, kProducts, kBlockRows - 1, kBlockVectors>(rows, vectors);
    }
  }
  return &multiply_block<T, kProducts, kBlockRows, kBlockVectors>;
}

std::size_t smaller(std::size_t a, std::size_t b) {
  return a < b ? a : b;
}

/// Columns with the padding.
template <class T>
std::size_t padded(std::size_t cols) {
  return (cols + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

/// Exchanges, in two rows that are kDistance apart, the lanes whose number has that bit in the upper and not in the lower.
template <class T, std::size_t kDistance, std::size_t... kLane>
inline void exchange(Vector<T>& upper, Vector<T>& lower, std::index_sequence<kLane...>) {
  const Vector<T> before = upper;
  upper = __builtin_shufflevector(before, lower, ((kLane & kDistance) != 0 ? kLanes<T> + kLane - kDistance : kLane)...);
  lower = __builtin_shufflevector(before, lower, ((kLane & kDistance) != 0 ? kLanes<T> + kLane : kLane + kDistance)...);
}

/// Transposes kLanes<T> rows: the bits of the row's number and of the lane's change places, one after the other.
template <class T, std::size_t kDistance = kLanes<T> / 2>
inline void transpose(Vector<T> (&rows)[kLanes<T>]) {
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kLanes<T>; ++r) {
    if ((r & kDistance) == 0) {
      exchange<T, kDistance>(rows[r], rows[r + kDistance], std::make_index_sequence<kLanes<T>>());
    }
  }
  if constexpr (kDistance > 1) {
    transpose<T, kDistance / 2>(rows);
  }
}

/// Columns [first, end) of a panel's rows [0, depth).
template <class T>
void copy_columns(const SteppedMatrix<T>& from, std::size_t depth, std::size_t first, std::size_t end,
                  std::size_t width, T* panel) {
  for (std::size_t k = 0; k < depth; ++k) {
    const T* const row = from.data + static_cast<std::ptrdiff_t>(k) * from.row_step;
    if (first == 0 && end == kPanel<T> && from.col_step == 1) {
      __builtin_memcpy(panel + k * kPanel<T>, row, kPanel<T> * sizeof(T));
      continue;
    }
    for (std::size_t c = first; c < end; ++c) {
      panel[k * width + c] = row[static_cast<std::ptrdiff_t>(c) * from.col_step];
    }
  }
}

/// The same from a matrix whose columns are stored one after the other.
template <class T>
void copy_stored_columns(const SteppedMatrix<T>& from, std::size_t depth, std::size_t end, std::size_t width,
                         T* panel) {
  const std::size_t whole_columns = end / kLanes<T> * kLanes<T>, whole_depth = depth / kLanes<T> * kLanes<T>;
  for (std::size_t c = 0; c < whole_columns; c += kLanes<T>) {
    for (std::size_t k = 0; k < whole_depth; k += kLanes<T>) {
      Vector<T> square[kLanes<T>];
#pragma GCC unroll 16
      for (std::size_t l = 0; l < kLanes<T>; ++l) {
        load<T>(from.data + static_cast<std::ptrdiff_t>(c + l) * from.col_step + k, square[l]);
      }
      transpose<T>(square);
#pragma GCC unroll 16
      for (std::size_t l = 0; l < kLanes<T>; ++l) {
        store<T>(square[l], panel + (k + l) * width + c);
      }
    }
  }
  const SteppedMatrix<T> rest{from.data + whole_depth, 1, from.col_step};
  copy_columns(rest, depth - whole_depth, 0, whole_columns, width, panel + whole_depth * width);
  copy_columns(from, depth, whole_columns, end, width, panel);
}

template <class T>
void pack(const SteppedMatrix<T>& given, std::size_t depth, std::size_t cols, T* packed) {
  for (std::size_t first = 0; first < cols; first += kPanel<T>) {
    const std::size_t count = smaller(kPanel<T>, cols - first), width = padded<T>(count);
    const SteppedMatrix<T> from{given.data + static_cast<std::ptrdiff_t>(first) * given.col_step, given.row_step,
                                given.col_step};
    if (given.row_step == 1) {
      copy_stored_columns(from, depth, count, width, packed);
    } else {
      copy_columns(from, depth, 0, count, width, packed);
    }
    for (std::size_t k = 0; k < depth; ++k) {
      for (std::size_t c = count; c < width; ++c) {
        packed[k * width + c] = 0;
      }
    }
    packed += depth * width;
  }
}

/// Of a panel, `depth` of whose rows are multiplied.
template <class T, Products kProducts>
void multiply_rows(Block<T> block, std::size_t rows) {
  const std::size_t vectors = padded<T>(block.cols) / kLanes<T>;
  const BlockFunction<T> whole = block_function<T, kProducts>(kRows, vectors);
  std::size_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    whole(block);
    block.left.data += kRows * block.left.row_step;
    block.out += kRows * block.out_stride;
  }
  if (row < rows) {
    block_function<T, kProducts>(rows - row, vectors)(block);
  }
}

template <class T, Products kProducts>
void multiply_all(const PackedOperands<T>& given) {
  // With a depth of 0, one part without terms sets what is not accumulated.
  for (std::size_t k = 0; k == 0 || k < given.depth; k += kDepth) {
    SteppedMatrix<T> left = given.left;
    left.data += static_cast<std::ptrdiff_t>(k) * left.col_step;
    const std::size_t depth = smaller(kDepth, given.depth - k);
    const T* panel = given.right;
    for (std::size_t col = 0; col < given.cols; col += kPanel<T>) {
      const std::size_t cols = smaller(kPanel<T>, given.cols - col), width = padded<T>(cols);
      multiply_rows<T, kProducts>(
          {left, panel + k * width, depth, cols, given.out + col, given.out_stride, given.accumulate || k > 0},
          given.rows);
      panel += given.depth * width;
    }
  }
}

#if !NUMCHECK_FUSED

/// The bits of a significand that any of the numbers needs, at most 53.
class Significands {
 public:
  void add(double x) { all_ |= __builtin_bit_cast(std::uint64_t, x) & kFraction; }
  [[nodiscard]] int bits() const { return all_ == 0 ? 1 : 53 - __builtin_ctzll(all_); }

 private:
  static constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  std::uint64_t all_ = 0;
};

template <class T>
bool products_are_exact(const PackedOperands<T>& given) {
  Significands left, right;
  for (std::size_t i = 0; i < given.rows; ++i) {
    const T* x = given.left.data + static_cast<std::ptrdiff_t>(i) * given.left.row_step;
    for (std::size_t k = 0; k < given.depth; ++k, x += given.left.col_step) {
      left.add(*x);
    }
  }
  for (std::size_t n = 0; n < given.depth * padded<T>(given.cols); ++n) {
    right.add(given.right[n]);
  }
  constexpr int kBits = sizeof(T) == sizeof(double) ? 53 : 24;
  return left.bits() + right.bits() <= kBits;
}

#endif

template <class T>
void multiply(const PackedOperands<T>& given) {
#if !NUMCHECK_FUSED
  if (products_are_exact(given)) {
    multiply_all<T, Products::exact>(given);
    return;
  }
#endif
  multiply_all<T, Products::any>(given);
}

template <class T>
constexpr PackedKernels<T> kKernels = {kLanes<T>, pack<T>, multiply<T>};

}  // namespace

const PackedKernels<double>& packed_kernels() noexcept {
  return kKernels<double>;
}

const PackedKernels<float>& packed_float_kernels() noexcept {
  return kKernels<float>;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
