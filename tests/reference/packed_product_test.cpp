// Products with factors that are packed once, by every instruction set.
#include "reference/packed_product.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/isa.hpp"
#include "reference/product.hpp"

namespace numcheck::reference {
namespace {

using Index = std::int64_t;
using Numbers = std::vector<double>;
constexpr double kUntouched = 77;

struct Shape {
  Index rows, cols, depth;
};
// Whole blocks of registers of all sets, one more and one less, single rows and columns, parts of the depth, no terms.
const std::vector<Shape> kShapes{{8, 24, 128}, {24, 48, 32}, {9, 25, 129}, {7, 23, 127}, {1, 1, 1},
                                 {1, 40, 5},   {40, 1, 9},   {5, 12, 0},   {2, 3, 1},    {31, 8, 300},
                                 {6, 16, 256}, {13, 37, 17}, {17, 49, 65}};

/// A matrix inside a larger one, stored as it is or as its transpose.
template <class T>
struct Stored {
  std::vector<T> data;
  TileFactor<T> factor;

  template <class Draw>
  Stored(Index rows, Index cols, bool transposed, const Draw& draw) {
    const Index lines = transposed ? cols : rows, stride = (transposed ? rows : cols) + 3;
    data.resize(static_cast<std::size_t>(lines * stride + 1));
    for (T& x : data) {
      x = static_cast<T>(draw());
    }
    factor = {data.data(), stride, transposed};
  }
  T& at(Index row, Index col) {
    return data[static_cast<std::size_t>(factor.transposed ? col * factor.stride + row : row * factor.stride + col)];
  }
};

/// rows x (cols + 2), untouched.
template <class T = double>
std::vector<T> blank(const Shape& shape) {
  return std::vector<T>(static_cast<std::size_t>(shape.rows * (shape.cols + 2)), T{kUntouched});
}

template <class T>
void multiply_packed(const Shape& shape, const TileFactor<T>& left, const TileFactor<T>& right, std::vector<T>& out,
                     bool accumulate) {
  PackedFactor<T> factor;
  factor.set(right, shape.depth, shape.cols);
  factor.multiply({left, shape.rows, out.data(), shape.cols + 2, accumulate});
}

class PackedProduct : public testing::Test {
 protected:
  ~PackedProduct() override { core::force_isa(initial_); }

  /// Calls body(shape, left is transposed, right is transposed) for every instruction set that this processor has.
  template <class Body>
  static void for_each_case(const Body& body) {
    for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
      if (core::force_isa(isa) != isa) {
        continue;
      }
      for (const Shape& shape : kShapes) {
        for (const int transposed : {0, 1, 2, 3}) {
          SCOPED_TRACE(testing::Message() << core::isa_name(isa) << ": " << shape.rows << " x " << shape.cols << " x "
                                          << shape.depth << ", transposed " << transposed);
          body(shape, (transposed & 1) != 0, (transposed & 2) != 0);
        }
      }
    }
  }

  /// Small integers: every order of summation is exact.
  double integer() { return static_cast<double>(random_() % 11) - 5; }
  template <class T>
  void expect_exact(const Shape& shape, bool left_transposed, bool right_transposed) {
    Stored<T> left(shape.rows, shape.depth, left_transposed, [this] { return integer(); });
    Stored<T> right(shape.depth, shape.cols, right_transposed, [this] { return integer(); });
    std::vector<T> out = blank<T>(shape);
    multiply_packed(shape, left.factor, right.factor, out, false);
    multiply_packed(shape, left.factor, right.factor, out, true);
    for (Index r = 0; r < shape.rows; ++r) {
      for (Index c = 0; c < shape.cols + 2; ++c) {
        T sum = 0;
        for (Index k = 0; k < shape.depth && c < shape.cols; ++k) {
          sum += left.at(r, k) * right.at(k, c);
        }
        ASSERT_EQ(out[static_cast<std::size_t>(r * (shape.cols + 2) + c)], c < shape.cols ? 2 * sum : T{kUntouched})
            << "at " << r << ", " << c;
      }
    }
  }

  double fraction() { return std::uniform_real_distribution<double>(-1, 1)(random_); }

 private:
  core::Isa initial_ = core::active_isa();
  std::mt19937_64 random_{5};
};

TEST_F(PackedProduct, is_exact_and_touches_nothing_else) {
  for_each_case([this](const Shape& shape, bool left_transposed, bool right_transposed) {
    expect_exact<double>(shape, left_transposed, right_transposed);
    expect_exact<float>(shape, left_transposed, right_transposed);
  });
}

TEST_F(PackedProduct, is_as_close_as_that_of_eigen) {
  for_each_case([this](const Shape& shape, bool left_transposed, bool right_transposed) {
    const Stored<double> left(shape.rows, shape.depth, left_transposed, [this] { return fraction(); });
    const Stored<double> right(shape.depth, shape.cols, right_transposed, [this] { return fraction(); });
    Numbers out = blank(shape), expected = out;
    multiply_packed(shape, left.factor, right.factor, out, true);
    multiply_by_eigen(
        {left.factor, right.factor, shape.rows, shape.cols, shape.depth, expected.data(), shape.cols + 2, true});
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], expected[i], 0x1p-52 * (kUntouched + 2.0 * static_cast<double>(shape.depth)));
    }
  });
}

TEST_F(PackedProduct, numbers_that_are_not_finite_stay_in_their_row_and_column) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for_each_case([this](const Shape& shape, bool left_transposed, bool right_transposed) {
    if (shape.depth == 0) {
      return;
    }
    Stored<double> left(shape.rows, shape.depth, left_transposed, [this] { return fraction(); });
    Stored<double> right(shape.depth, shape.cols, right_transposed, [this] { return fraction(); });
    Numbers before = blank(shape), after = before;
    multiply_packed(shape, left.factor, right.factor, before, false);
    left.at(shape.rows - 1, shape.depth / 2) = std::nan("");
    right.at(shape.depth - 1, shape.cols - 1) = kInfinity;  // beside the padding
    multiply_packed(shape, left.factor, right.factor, after, false);
    for (Index r = 0; r < shape.rows; ++r) {
      for (Index c = 0; c < shape.cols + 2; ++c) {
        const auto at = static_cast<std::size_t>(r * (shape.cols + 2) + c);
        if (c < shape.cols && r == shape.rows - 1) {
          ASSERT_TRUE(std::isnan(after[at]));
        } else if (c == shape.cols - 1) {
          ASSERT_FALSE(std::isfinite(after[at]));
        } else {
          ASSERT_EQ(after[at], before[at]) << "at " << r << ", " << c;
        }
      }
    }
  });
}

// Gradients of queries are summed in one of two ways, depending on the number of threads.
TEST_F(PackedProduct, elements_do_not_depend_on_their_neighbours) {
  for_each_case([this](const Shape& shape, bool left_transposed, bool right_transposed) {
    const Stored<double> left(shape.rows, shape.depth, left_transposed, [this] { return fraction(); });
    const Stored<double> right(shape.depth, shape.cols, right_transposed, [this] { return fraction(); });
    Numbers all = blank(shape);
    multiply_packed(shape, left.factor, right.factor, all, false);
    // The last row and column alone.
    const TileFactor<double> row{left.factor.data + (shape.rows - 1) * (left_transposed ? 1 : left.factor.stride),
                                 left.factor.stride, left_transposed};
    const TileFactor<double> col{right.factor.data + (shape.cols - 1) * (right_transposed ? right.factor.stride : 1),
                                 right.factor.stride, right_transposed};
    Numbers one(3, kUntouched);
    multiply_packed<double>({1, 1, shape.depth}, row, col, one, false);
    ASSERT_EQ(one[0], all[static_cast<std::size_t>(shape.rows * (shape.cols + 2) - 3)]);
  });
}

/// Bits of products of every shape and instruction set, one after the other.
template <class T, class Draw>
std::vector<std::vector<T>> products_by_isa(const Draw& draw) {
  std::vector<std::vector<T>> all;
  for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
    if (core::force_isa(isa) != isa) {
      continue;
    }
    std::mt19937_64 random(7);
    std::vector<T>& products = all.emplace_back();
    for (const Shape& shape : kShapes) {
      const Stored<T> left(shape.rows, shape.depth, true, [&] { return draw(random); });
      const Stored<T> right(shape.depth, shape.cols, false, [&] { return draw(random); });
      std::vector<T> out = blank<T>(shape);
      multiply_packed(shape, left.factor, right.factor, out, false);
      products.insert(products.end(), out.begin(), out.end());
    }
  }
  return all;
}

template <class T, class Draw>
void expect_same_bits(const Draw& draw) {
  const std::vector<std::vector<T>> all = products_by_isa<T>(draw);
  for (const std::vector<T>& products : all) {
    EXPECT_EQ(std::memcmp(products.data(), all.front().data(), products.size() * sizeof(T)), 0);
  }
}

TEST_F(PackedProduct, all_instruction_sets_produce_the_same_bits) {
  const auto fraction = [](std::mt19937_64& random) { return std::uniform_real_distribution<double>(-1, 1)(random); };
  const auto narrow = [&](std::mt19937_64& random) {
    return static_cast<double>(static_cast<float>(fraction(random)));
  };
  // Numbers of few bits, whose products with others end in the middle between two numbers, and numbers so small that they only
  // decide between those.
  const auto mixed = [&](std::mt19937_64& random) {
    const double x = fraction(random);
    const auto kind = random() % 3;
    return kind == 0 ? x : kind == 1 ? std::nearbyint(x * 32) / 4 : std::ldexp(x, -static_cast<int>(random() % 200));
  };
  expect_same_bits<double>(fraction);
  expect_same_bits<double>(narrow);
  expect_same_bits<double>(mixed);
  expect_same_bits<float>(fraction);
  expect_same_bits<float>(mixed);
}

TEST_F(PackedProduct, keeps_what_it_has_and_replaces_it) {
  for (const core::Isa isa : {core::Isa::baseline, core::active_isa()}) {
    core::force_isa(isa);
    const Numbers numbers = {1, 2, 3, 4, 5, 6};
    PackedFactor<double> factor;
    PackedRows rows;
    const auto product = [&](Index first, bool transposed) {
      factor.keep({numbers.data() + first, 2, transposed}, 2, 2);
      rows.keep(numbers.data() + first, 2, 2, 2);
      Numbers out(4);
      factor.multiply({rows.factor(), 2, out.data(), 2, false});
      return out;
    };
    EXPECT_EQ(product(0, false), (Numbers{7, 10, 15, 22}));
    EXPECT_EQ(product(0, false), (Numbers{7, 10, 15, 22}));
    EXPECT_EQ(product(0, true), (Numbers{5, 11, 11, 25}));
    EXPECT_EQ(product(2, false), (Numbers{29, 36, 45, 56}));
    EXPECT_EQ(rows.factor(1).data[0], 5);
  }
}

}  // namespace
}  // namespace numcheck::reference
