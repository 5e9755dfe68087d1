// Codes of a tile, from registers to memory: as x lies, and transposed.
#pragma once

#include "kernels/cuda/block_tile.cuh"

namespace numcheck::kernels::cuda {

/// Codes of every row, with one factor for each of them, to the layout along rows.
template <class Out, bool kVector, class In>
__device__ __forceinline__ void store_rows(const BlockQuantizeLaunch& p, const TilePlace& at,
                                           const TilePiece<In> (&x)[kTileRows], const float (&factor)[kTileRows]) {
  const std::int64_t col = at.first_col + at.col;
#pragma unroll
  for (int i = 0; i < kTileRows; ++i) {
    const std::int64_t row = at.first_row + at.row + i;
    Vec<unsigned, kTileWidth / 4> words;
#pragma unroll
    for (int w = 0; w < kTileWidth / 4; ++w) {
      words.at[w] = code_word<Out>(x[i][4 * w] * factor[i], x[i][4 * w + 1] * factor[i], x[i][4 * w + 2] * factor[i],
                                   x[i][4 * w + 3] * factor[i]);
    }
    if (row < p.rows) {
      store_codes<kVector>(p.along_rows.codes, row * p.cols + col, words, p.cols - col);
    }
  }
}

/// The same with a factor for each column, to the layout along columns, as x lies.
template <class Out, bool kVector, class In>
__device__ __forceinline__ void store_columns(const BlockQuantizeLaunch& p, const TilePlace& at,
                                              const TilePiece<In> (&x)[kTileRows], const float (&factor)[kTileWidth]) {
  const std::int64_t col = at.first_col + at.col;
#pragma unroll
  for (int i = 0; i < kTileRows; ++i) {
    const std::int64_t row = at.first_row + at.row + i;
    Vec<unsigned, kTileWidth / 4> words;
#pragma unroll
    for (int w = 0; w < kTileWidth / 4; ++w) {
      words.at[w] = code_word<Out>(x[i][4 * w] * factor[4 * w], x[i][4 * w + 1] * factor[4 * w + 1],
                                   x[i][4 * w + 2] * factor[4 * w + 2], x[i][4 * w + 3] * factor[4 * w + 3]);
    }
    if (row < p.rows) {
      store_codes<kVector>(p.along_columns.codes, row * p.cols + col, words, p.cols - col);
    }
  }
}

/// Codes on their way to the layout along columns, transposed; a word holds four codes of a column. Groups of four words are exchanged
/// depending on the column, so that the lanes of a warp write to 16 banks instead of two, and reading them as 16 bytes has no conflicts.
class TurnedTile {
 public:
  /// The words of a thread's columns.
  __device__ __forceinline__ void put(const TilePlace& at, const unsigned (&words)[kTileWidth]) {
#pragma unroll
    for (int j = 0; j < kTileWidth; ++j) {
      const int col = at.col + j;
      words_[col * kTileWords + (at.row / kTileRows ^ swap_of(col))] = words[j];
    }
  }

  /// After a barrier, by all threads of the block.
  template <bool kVector, int kThreads>
  __device__ __forceinline__ void write(const BlockQuantizeLaunch& p, const TilePlace& at) const {
#pragma unroll
    for (int k = 0; k < kTileSide * kTileSide / kTurnedWidth / kThreads; ++k) {
      const int index = k * kThreads + static_cast<int>(threadIdx.x);
      const int col = index / (kTileSide / kTurnedWidth), group = index % (kTileSide / kTurnedWidth);
      const std::int64_t row = at.first_row + group * kTurnedWidth, line = at.first_col + col;
      if (line < p.cols) {
        const auto read = Vec<unsigned, 4>::load(words_ + col * kTileWords + (group * 4 ^ swap_of(col)));
        store_codes<kVector>(p.along_columns.codes, line * p.rows + row, read, p.rows - row);
      }
    }
  }

 private:
  alignas(16) unsigned words_[kTileSide * kTileWords];

  __device__ __forceinline__ static int swap_of(int col) { return col / kTileWidth % (kTileWords / 4) * 4; }
};

/// Codes of a thread's columns, with a factor for each.
template <class Out, class In>
__device__ __forceinline__ void column_words(const TilePiece<In> (&x)[kTileRows], const float (&factor)[kTileWidth],
                                             unsigned (&words)[kTileWidth]) {
#pragma unroll
  for (int j = 0; j < kTileWidth; ++j) {
    words[j] = code_word<Out>(x[0][j] * factor[j], x[1][j] * factor[j], x[2][j] * factor[j], x[3][j] * factor[j]);
  }
}

/// Four words of four bytes, transposed.
__device__ __forceinline__ void turn(unsigned (&word)[4]) {
  const unsigned low01 = __byte_perm(word[0], word[1], 0x5140), high01 = __byte_perm(word[0], word[1], 0x7362);
  const unsigned low23 = __byte_perm(word[2], word[3], 0x5140), high23 = __byte_perm(word[2], word[3], 0x7362);
  word[0] = __byte_perm(low01, low23, 0x5410);
  word[1] = __byte_perm(low01, low23, 0x7632);
  word[2] = __byte_perm(high01, high23, 0x5410);
  word[3] = __byte_perm(high01, high23, 0x7632);
}

/// With one factor for all, so that both layouts have the same codes, which are made once: those of rows are stored, and so are those
/// of columns unless they are to be transposed, for which `turned` has them.
template <class Out, bool kVector, class In>
__device__ __forceinline__ void store_square(const BlockQuantizeLaunch& p, const TilePlace& at,
                                             const TilePiece<In> (&x)[kTileRows], float factor,
                                             unsigned (&turned)[kTileWidth]) {
  static_assert(kTileRows == 4);
  const std::int64_t col = at.first_col + at.col;
#pragma unroll
  for (int i = 0; i < kTileRows; ++i) {
    const std::int64_t row = at.first_row + at.row + i;
    Vec<unsigned, kTileWidth / 4> words;
#pragma unroll
    for (int w = 0; w < kTileWidth / 4; ++w) {
      words.at[w] = code_word<Out>(x[i][4 * w] * factor, x[i][4 * w + 1] * factor, x[i][4 * w + 2] * factor,
                                   x[i][4 * w + 3] * factor);
      turned[4 * w + i] = words.at[w];
    }
    if (p.along_rows.codes != nullptr && row < p.rows) {
      store_codes<kVector>(p.along_rows.codes, row * p.cols + col, words, p.cols - col);
    }
    if (p.along_columns.codes != nullptr && !p.along_columns.transposed && row < p.rows) {
      store_codes<kVector>(p.along_columns.codes, row * p.cols + col, words, p.cols - col);
    }
  }
#pragma unroll
  for (int w = 0; w < kTileWidth / 4; ++w) {
    turn(reinterpret_cast<unsigned(&)[4]>(turned[4 * w]));
  }
}

/// Whether codes along columns are wanted, transposed.
__device__ __forceinline__ bool is_turned(const BlockQuantizeLaunch& p) {
  return p.along_columns.codes != nullptr && p.along_columns.transposed;
}

}  // namespace numcheck::kernels::cuda
