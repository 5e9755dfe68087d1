// The product of one tile, by OpenBLAS or by Eigen's own kernels. Which of them a process uses is decided once.
#pragma once

#include <cstdint>
#include <string>

namespace numcheck::reference {

/// A factor of a tile: row-major with `stride` elements from row to row; with `transposed`, the transpose of that.
template <class T>
struct TileFactor {
  const T* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// out (rows x cols, row-major, `out_stride` elements from row to row) = left (rows x depth) * right (depth x cols), or
/// out += that. Rows and columns are positive; with depth 0 the product is zero.
template <class T>
struct TileProduct {
  TileFactor<T> left;
  TileFactor<T> right;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t depth = 0;
  T* out = nullptr;
  std::int64_t out_stride = 0;
  bool accumulate = false;
};

/// Eigen's own kernels. Throws std::bad_alloc.
void multiply_by_eigen(const TileProduct<double>& product);
void multiply_by_eigen(const TileProduct<float>& product);
/// "Eigen 3.4.0 SSE2".
[[nodiscard]] std::string describe_eigen();

/// Whether OpenBLAS is linked and has its buffers. OpenBLAS retries forever to allocate a buffer that the system has no
/// memory for, so it is used only if all the buffers that it will need can be allocated at the first call and, if the
/// address space is limited (ulimit -v), leave room for everything else.
[[nodiscard]] bool blas_is_usable();
/// One thread each; only if blas_is_usable(). Throws core::InternalError if a dimension exceeds BLAS's 32 bits.
void multiply_by_blas(const TileProduct<double>& product);
void multiply_by_blas(const TileProduct<float>& product);
/// By BLAS if it is usable, otherwise by Eigen.
template <class T>
void multiply(const TileProduct<T>& product) {
  if (blas_is_usable()) {
    multiply_by_blas(product);
  } else {
    multiply_by_eigen(product);
  }
}
/// "OpenBLAS 0.3.21 SkylakeX"; empty if none is linked.
[[nodiscard]] std::string describe_blas();

}  // namespace numcheck::reference
