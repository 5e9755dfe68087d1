#include <sstream>

#include <Eigen/Core>

#include "reference/product.hpp"

namespace numcheck::reference {
namespace {

template <class T>
using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ConstMap = Eigen::Map<const Dense<T>, 0, Eigen::OuterStride<>>;

template <class T>
void multiply_tile(const TileProduct<T>& product) {
  Eigen::Map<Dense<T>, 0, Eigen::OuterStride<>> out(product.out, product.rows, product.cols,
                                                    Eigen::OuterStride<>(product.out_stride));
  const auto assign = [&](const auto& value) {
    if (product.accumulate) {
      out.noalias() += value;
    } else {
      out.noalias() = value;
    }
  };
  const auto with_left = [&](const auto& left) {
    const Eigen::OuterStride<> stride(product.right.stride);
    if (product.right.transposed) {
      assign(left * ConstMap<T>(product.right.data, product.cols, product.depth, stride).transpose());
    } else {
      assign(left * ConstMap<T>(product.right.data, product.depth, product.cols, stride));
    }
  };
  const Eigen::OuterStride<> stride(product.left.stride);
  if (product.left.transposed) {
    with_left(ConstMap<T>(product.left.data, product.depth, product.rows, stride).transpose());
  } else {
    with_left(ConstMap<T>(product.left.data, product.rows, product.depth, stride));
  }
}

}  // namespace

void multiply_by_eigen(const TileProduct<double>& product) {
  multiply_tile(product);
}

void multiply_by_eigen(const TileProduct<float>& product) {
  multiply_tile(product);
}

std::string describe_eigen() {
  std::ostringstream text;
  text << "Eigen " << EIGEN_WORLD_VERSION << '.' << EIGEN_MAJOR_VERSION << '.' << EIGEN_MINOR_VERSION << ' '
       << Eigen::SimdInstructionSetsInUse();
  return text.str();
}

}  // namespace numcheck::reference
