#include "reference/packed_product.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "core/isa.hpp"
#include "reference/packed_kernels.hpp"

namespace numcheck::reference {
namespace {

template <class T>
const PackedKernels<T>& kernels_of() {
  if constexpr (std::is_same_v<T, double>) {
    return NUMCHECK_ACTIVE_ISA(packed_kernels)();
  } else {
    return NUMCHECK_ACTIVE_ISA(packed_float_kernels)();
  }
}

template <class T>
SteppedMatrix<T> stepped(const TileFactor<T>& factor) {
  return {factor.data, factor.transposed ? 1 : factor.stride, factor.transposed ? factor.stride : 1};
}

template <class T>
void grow(core::Buffer<T>& buffer, std::size_t size) {
  if (buffer.size() < size) {
    buffer = core::Buffer<T>(size);
  }
}

}  // namespace

template <class T>
void PackedFactor<T>::set(const TileFactor<T>& given, std::int64_t depth, std::int64_t cols) {
  given_ = given;
  depth_ = depth;
  cols_ = cols;
  const PackedKernels<T>& kernels = kernels_of<T>();
  const auto rows = static_cast<std::size_t>(depth), width = static_cast<std::size_t>(cols);
  grow(packed_, rows * ((width + kernels.lanes - 1) / kernels.lanes * kernels.lanes));
  kernels.pack(stepped(given), rows, width, packed_.data());
}

template <class T>
void PackedFactor<T>::keep(const TileFactor<T>& given, std::int64_t depth, std::int64_t cols) {
  if (given.data != given_.data || given.stride != given_.stride || given.transposed != given_.transposed ||
      depth != depth_ || cols != cols_) {
    set(given, depth, cols);
  }
}

template <class T>
void PackedFactor<T>::multiply(const Product& product) const {
  kernels_of<T>().multiply({.left = stepped(product.left),
                            .right = packed_.data(),
                            .rows = static_cast<std::size_t>(product.rows),
                            .cols = static_cast<std::size_t>(cols_),
                            .depth = static_cast<std::size_t>(depth_),
                            .out = product.out,
                            .out_stride = product.out_stride,
                            .accumulate = product.accumulate});
}

template class PackedFactor<double>;
template class PackedFactor<float>;

void PackedRows::keep(const double* data, std::int64_t stride, std::int64_t rows, std::int64_t width) {
  if (data == data_ && stride == stride_ && rows == count_ && width == width_) {
    return;
  }
  data_ = data;
  stride_ = stride;
  count_ = rows;
  width_ = width;
  grow(rows_, static_cast<std::size_t>(rows * width));
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(data + i * stride, width, rows_.data() + i * width);
  }
}

}  // namespace numcheck::reference
