// Products of small tiles by factors that are prepared once: BLAS packs both factors in every call, which costs as much as
// a fifth of a product of 256 x 256 x 128.
#pragma once

#include <cstdint>

#include "core/buffer.hpp"
#include "reference/product.hpp"

namespace numcheck::reference {

/// The right-hand factor of products in double or float, depth x cols.
///
/// Our own kernels multiply: results depend neither on the instruction set nor on the number of threads. Numbers that are not
/// finite stay in the rows and columns of the product that theirs are in.
template <class T>
class PackedFactor {
 public:
  /// Prepares `given`. Memory is kept for the next one.
  void set(const TileFactor<T>& given, std::int64_t depth, std::int64_t cols);
  /// The same, but nothing happens if that was prepared last. Its numbers must not have changed since.
  void keep(const TileFactor<T>& given, std::int64_t depth, std::int64_t cols);
  [[nodiscard]] std::int64_t depth() const noexcept { return depth_; }
  [[nodiscard]] std::int64_t cols() const noexcept { return cols_; }

  /// out (rows x cols, row-major, `out_stride` elements from row to row) = left (rows x depth) * this, or out += that.
  struct Product {
    TileFactor<T> left;
    std::int64_t rows = 0;
    T* out = nullptr;
    std::int64_t out_stride = 0;
    bool accumulate = false;
  };
  void multiply(const Product& product) const;

 private:
  TileFactor<T> given_;
  std::int64_t depth_ = 0, cols_ = 0;
  core::Buffer<T> packed_;
};

/// Rows of a tile side by side: where rows are a power of two apart, their numbers compete for the same places of a cache.
class PackedRows {
 public:
  /// Nothing happens if these were copied last. Their numbers must not have changed since.
  void keep(const double* data, std::int64_t stride, std::int64_t rows, std::int64_t width);
  /// From row `first` on.
  [[nodiscard]] TileFactor<double> factor(std::int64_t first = 0) const noexcept {
    return {rows_.data() + first * width_, width_, false};
  }

 private:
  const double* data_ = nullptr;
  std::int64_t stride_ = 0, count_ = 0, width_ = 0;
  core::Buffer<double> rows_;
};

}  // namespace numcheck::reference
