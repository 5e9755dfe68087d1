// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "reference/packed_kernels.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <utility>

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

#if defined(__AVX2__)

// A block of rows x vectors sums stays in registers, beside the vectors of one row of a panel and a broadcast number. It
// takes at least eight sums to keep two units busy that take four cycles for a multiply-add.
#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
constexpr int kRows = 8, kVectors = 3;
#else
constexpr std::size_t kVectorBytes = 32;
constexpr int kRows = 6, kVectors = 2;
#endif
template <class T>
constexpr std::size_t kLanes = kVectorBytes / sizeof(T);
template <class T>
constexpr std::size_t kPanel = kLanes<T> * kVectors;
/// Rows of a panel that are multiplied at a time: they stay in the first-level cache for all rows of the left, also where two
/// threads share it (12 KiB each).
constexpr std::size_t kDepth = 64;

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
inline void load(const T* x, Vector<T>& out) {
  __builtin_memcpy(&out, x, sizeof(out));
}

template <class T>
inline void store(const Vector<T>& x, T* out) {
  __builtin_memcpy(out, &x, sizeof(x));
}

/// a b + c, rounded once. Compilers that may choose contract some blocks and not others, and then results depend on where in
/// a block an element is: GCC 13 avoids chains of such instructions in blocks of few sums.
#if defined(__AVX512F__)
inline Vector<double> multiply_add(double a, const Vector<double>& b, const Vector<double>& c) {
  return _mm512_fmadd_pd(_mm512_set1_pd(a), b, c);
}
inline Vector<float> multiply_add(float a, const Vector<float>& b, const Vector<float>& c) {
  return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
}
#else
inline Vector<double> multiply_add(double a, const Vector<double>& b, const Vector<double>& c) {
  return _mm256_fmadd_pd(_mm256_set1_pd(a), b, c);
}
inline Vector<float> multiply_add(float a, const Vector<float>& b, const Vector<float>& c) {
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
}
#endif

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

template <class T, int kBlockRows, int kBlockVectors>
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
        sums[r][v] = multiply_add(factor, right[v], sums[r][v]);
      }
    }
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
template <class T, int kBlockRows = kRows, int kBlockVectors = kVectors>
BlockFunction<T> block_function(std::size_t rows, std::size_t vectors) {
  if constexpr (kBlockVectors > 1) {
    if (vectors < static_cast<std::size_t>(kBlockVectors)) {
      return block_function<T, kBlockRows, kBlockVectors - 1>(rows, vectors);
    }
  }
  if constexpr (kBlockRows > 1) {
    if (rows < static_cast<std::size_t>(kBlockRows)) {
      return block_function<T, kBlockRows - 1, kBlockVectors>(rows, vectors);
    }
  }
  return &multiply_block<T, kBlockRows, kBlockVectors>;
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
template <class T>
void multiply_rows(Block<T> block, std::size_t rows) {
  const std::size_t vectors = padded<T>(block.cols) / kLanes<T>;
  const BlockFunction<T> whole = block_function<T>(kRows, vectors);
  std::size_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    whole(block);
    block.left.data += kRows * block.left.row_step;
    block.out += kRows * block.out_stride;
  }
  if (row < rows) {
    block_function<T>(rows - row, vectors)(block);
  }
}

template <class T>
void multiply(const PackedOperands<T>& given) {
  // With a depth of 0, one part without terms sets what is not accumulated.
  for (std::size_t k = 0; k == 0 || k < given.depth; k += kDepth) {
    SteppedMatrix<T> left = given.left;
    left.data += static_cast<std::ptrdiff_t>(k) * left.col_step;
    const std::size_t depth = smaller(kDepth, given.depth - k);
    const T* panel = given.right;
    for (std::size_t col = 0; col < given.cols; col += kPanel<T>) {
      const std::size_t cols = smaller(kPanel<T>, given.cols - col), width = padded<T>(cols);
      multiply_rows<T>(
          {left, panel + k * width, depth, cols, given.out + col, given.out_stride, given.accumulate || k > 0},
          given.rows);
      panel += given.depth * width;
    }
  }
}

template <class T>
constexpr PackedKernels<T> kKernels = {kLanes<T>, pack<T>, multiply<T>};

#else

template <class T>
constexpr PackedKernels<T> kKernels{};

#endif

}  // namespace

const PackedKernels<double>& packed_kernels() noexcept {
  return kKernels<double>;
}

const PackedKernels<float>& packed_float_kernels() noexcept {
  return kKernels<float>;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
