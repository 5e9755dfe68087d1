// The product of one tile, by each implementation: small integers, so that every order of summation is exact.
#include "reference/product.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/matmul.hpp"

namespace numcheck::reference {
namespace {

using Index = std::int64_t;

/// A rows x cols matrix inside a larger one, stored as it is or as its transpose.
template <class T>
struct Stored {
  std::vector<T> data;
  TileFactor<T> factor;

  Stored(Index rows, Index cols, bool transposed, int salt) {
    const Index lines = transposed ? cols : rows;
    const Index stride = (transposed ? rows : cols) + 3;
    data.resize(static_cast<std::size_t>(lines * stride));
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<T>((static_cast<int>(i) * 7 + salt) % 11 - 5);
    }
    factor = {data.data(), stride, transposed};
  }
  [[nodiscard]] T at(Index row, Index col) const {
    return factor.transposed ? data[static_cast<std::size_t>(col * factor.stride + row)]
                             : data[static_cast<std::size_t>(row * factor.stride + col)];
  }
};

struct Shape {
  Index rows, cols, depth;
};
// General, vectors on either side, a single output, few terms (too few for BLAS), none.
const std::vector<Shape> kShapes{{33, 47, 29}, {1, 60, 35}, {60, 1, 35}, {1, 1, 100},
                                 {2, 3, 4},    {5, 40, 0},  {64, 64, 1}};

template <class T, class Multiply>
void expect_exact(const Multiply& multiply) {
  for (const Shape& shape : kShapes) {
    for (const bool left_transposed : {false, true}) {
      for (const bool right_transposed : {false, true}) {
        const Stored<T> left(shape.rows, shape.depth, left_transposed, 1);
        const Stored<T> right(shape.depth, shape.cols, right_transposed, 4);
        const Index stride = shape.cols + 2;
        std::vector<T> out(static_cast<std::size_t>(shape.rows * stride), T{77});
        TileProduct<T> product{left.factor, right.factor, shape.rows, shape.cols, shape.depth, out.data(), stride};
        multiply(product);
        product.accumulate = true;
        multiply(product);
        for (Index r = 0; r < shape.rows; ++r) {
          for (Index c = 0; c < stride; ++c) {
            T sum = 0;
            for (Index k = 0; k < shape.depth && c < shape.cols; ++k) {
              sum += left.at(r, k) * right.at(k, c);
            }
            ASSERT_EQ(out[static_cast<std::size_t>(r * stride + c)], c < shape.cols ? 2 * sum : T{77})
                << shape.rows << " x " << shape.cols << " x " << shape.depth << (left_transposed ? " left^T" : "")
                << (right_transposed ? " right^T" : "") << " at " << r << ", " << c;
          }
        }
      }
    }
  }
}

TEST(Product, by_eigen) {
  expect_exact<double>([](const TileProduct<double>& product) { multiply_by_eigen(product); });
  expect_exact<float>([](const TileProduct<float>& product) { multiply_by_eigen(product); });
}

TEST(Product, by_blas) {
  if (!blas_is_usable()) {
    GTEST_SKIP() << "no OpenBLAS, or no room for its buffers";
  }
  expect_exact<double>([](const TileProduct<double>& product) { multiply_by_blas(product); });
  expect_exact<float>([](const TileProduct<float>& product) { multiply_by_blas(product); });
}

TEST(Product, names_the_implementation) {
  EXPECT_EQ(describe_eigen().find("Eigen "), 0U);
  EXPECT_EQ(matmul_implementation(), blas_is_usable() ? describe_blas() : describe_eigen());
}

}  // namespace
}  // namespace numcheck::reference
