// Whole simulated products against the composition of scalar steps; layouts, orders, epilogues.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "model/arithmetic.hpp"
#include "model/simulate.hpp"
#include "tests/unit/model/steps.hpp"

namespace {

using namespace numcheck;
using core::Dtype;
using model::GemmTask;
using model::MatrixView;

/// A stored matrix with padded rows.
struct Stored {
  std::vector<std::byte> bytes;
  std::vector<float> values;  ///< rows x columns, as stored numbers
  MatrixView view;
};

Stored make_matrix(std::mt19937& random, Dtype dtype, std::int64_t rows, std::int64_t columns, std::int64_t pad) {
  Stored s;
  const auto width = static_cast<std::size_t>(core::dtype_info(dtype).storage_bytes);
  const std::int64_t ld = columns + pad;
  s.bytes.assign(static_cast<std::size_t>(rows * ld) * width, std::byte{0xFF});
  std::normal_distribution<double> normal;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::uint64_t word = core::encode(static_cast<double>(static_cast<float>(normal(random))), dtype);
      std::memcpy(s.bytes.data() + static_cast<std::size_t>(r * ld + c) * width, &word, width);
      s.values.push_back(static_cast<float>(core::decode(word, dtype)));
    }
  }
  s.view = {s.bytes.data(), dtype, rows, columns, ld, 1};
  return s;
}

std::vector<float> run(GemmTask task, Dtype output = Dtype::fp32) {
  const auto m = static_cast<std::size_t>(task.a.rows);
  const auto n = static_cast<std::size_t>(task.b.columns);
  const auto width = static_cast<std::size_t>(core::dtype_info(output).storage_bytes);
  std::vector<std::byte> d(m * n * width, std::byte{0xFF});
  task.epilogue.output = output;
  task.d = {d.data(), static_cast<std::int64_t>(n)};
  static_cast<void>(model::simulate_gemm(task));
  std::vector<double> values(m * n);
  core::decode(d, output, values);
  return {values.begin(), values.end()};
}

struct Layout {
  std::string mode;
  bool trans_a;
  bool trans_b;
  int split_k;
};

TEST(SimulateGemm, equals_the_composition_of_scalar_steps) {
  std::mt19937 random(3);
  const std::int64_t m = 7;
  const std::int64_t n = 19;
  const std::int64_t k = 131;
  for (const Layout& layout :
       {Layout{"fp32", false, false, 1}, Layout{"fp32", true, true, 2}, Layout{"tf32", false, true, 1},
        Layout{"bf16", true, false, 2}, Layout{"fp16", false, true, 1}, Layout{"fp16_acc16", true, true, 1},
        Layout{"fp8_e4m3", false, true, 1}, Layout{"fp8_hybrid", true, false, 4}}) {
    const op::Mode& mode = *op::find_mode(layout.mode);
    const bool tf32 = layout.mode == "tf32";
    const Stored a =
        layout.trans_a ? make_matrix(random, mode.first, k, m, 3) : make_matrix(random, mode.first, m, k, 5);
    const Stored b =
        layout.trans_b ? make_matrix(random, mode.second, n, k, 1) : make_matrix(random, mode.second, k, n, 0);
    GemmTask task;
    task.a = layout.trans_a ? a.view.transposed() : a.view;
    task.b = layout.trans_b ? b.view.transposed() : b.view;
    task.conversion.dtype = tf32 ? Dtype::tf32 : Dtype::fp32;
    task.schedule = model::gemm_schedule(90, mode, true, tf32, layout.split_k);
    const std::vector<float> got = run(task);
    const auto at = [](const Stored& s, bool transposed, std::int64_t r, std::int64_t c) {
      return s.values[static_cast<std::size_t>(transposed ? c * s.view.columns + r : r * s.view.columns + c)];
    };
    const auto operand = [&](float x) {
      return tf32 ? static_cast<float>(core::round_to(static_cast<double>(x), Dtype::tf32)) : x;
    };
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        std::vector<float> row;
        std::vector<float> column;
        for (std::int64_t t = 0; t < k; ++t) {
          row.push_back(operand(at(a, layout.trans_a, i, t)));
          column.push_back(operand(at(b, layout.trans_b, t, j)));
        }
        const float expected = testing_model::element_by_steps(task.schedule, tf32 ? Dtype::tf32 : mode.first,
                                                               tf32 ? Dtype::tf32 : mode.second, row, column);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(got[static_cast<std::size_t>(i * n + j)]),
                  std::bit_cast<std::uint32_t>(expected))
            << layout.mode << " element " << i << "," << j;
      }
    }
  }
}

TEST(SimulateGemm, order_within_a_step_is_free_and_across_steps_is_not) {
  std::mt19937 random(4);
  const Stored a = make_matrix(random, Dtype::bf16, 9, 64, 0);
  const Stored b = make_matrix(random, Dtype::bf16, 64, 33, 0);
  GemmTask task;
  task.a = a.view;
  task.b = b.view;
  task.schedule = model::gemm_schedule(90, *op::find_mode("bf16"), false, false);
  const std::vector<float> natural = run(task);
  std::vector<std::int64_t>& order = task.schedule.k_order;
  order.resize(64);
  std::iota(order.begin(), order.end(), 0);
  for (auto step = order.begin(); step != order.end(); step += 16) {
    std::shuffle(step, step + 16, random);
  }
  EXPECT_EQ(run(task), natural);
  std::shuffle(order.begin(), order.end(), random);
  EXPECT_NE(run(task), natural);
}

TEST(SimulateGemm, repeated_and_missing_products) {
  std::mt19937 random(5);
  const Stored a = make_matrix(random, Dtype::fp32, 4, 6, 0);
  const Stored b = make_matrix(random, Dtype::fp32, 6, 5, 0);
  GemmTask task;
  task.a = a.view;
  task.b = b.view;
  task.schedule.k_order = {5, 0, 0};
  const std::vector<float> got = run(task);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 5; ++j) {
      float sum = std::fma(a.values[i * 6 + 5], b.values[25 + j], 0.0F);
      sum = std::fma(a.values[i * 6], b.values[j], sum);
      sum = std::fma(a.values[i * 6], b.values[j], sum);
      EXPECT_EQ(got[i * 5 + j], sum);
    }
  }
}

TEST(SimulateGemm, no_products_leave_the_epilogue) {
  std::mt19937 random(6);
  const Stored c = make_matrix(random, Dtype::fp32, 3, 4, 2);
  GemmTask task;
  task.a = {nullptr, Dtype::fp32, 3, 0, 1, 1};
  task.b = {nullptr, Dtype::fp32, 0, 4, 4, 1};
  task.epilogue.beta = 2;
  task.epilogue.c = c.view;
  const std::vector<float> got = run(task);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i], 2 * c.values[i]);
  }
}

TEST(SimulateGemm, three_tf32_products_come_near_fp32) {
  std::mt19937 random(8);
  const Stored a = make_matrix(random, Dtype::fp32, 16, 40, 0);
  const Stored b = make_matrix(random, Dtype::fp32, 40, 16, 0);
  GemmTask task;
  task.a = a.view;
  task.b = b.view;
  const std::vector<float> fp32 = run(task);
  task.schedule = model::gemm_schedule(90, *op::find_mode("fp32"), false, true);
  task.three_tf32 = true;
  const std::vector<float> three = run(task);
  task.three_tf32 = false;
  task.conversion.dtype = Dtype::tf32;
  const std::vector<float> one = run(task);
  double error_three = 0;
  double error_one = 0;
  for (std::size_t i = 0; i < fp32.size(); ++i) {
    error_three = std::max(error_three, std::fabs(static_cast<double>(three[i]) - static_cast<double>(fp32[i])));
    error_one = std::max(error_one, std::fabs(static_cast<double>(one[i]) - static_cast<double>(fp32[i])));
  }
  EXPECT_NE(three, fp32);
  EXPECT_LT(error_three, 1e-5);
  EXPECT_GT(error_one, 50 * error_three);
}

TEST(LoadMatrix, every_pattern_of_the_narrow_formats) {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    const std::size_t count = core::dtype_info(dtype).storage_bytes == 2 ? 65536 : 256;
    std::vector<std::byte> bytes;
    for (std::size_t word = 0; word < count; ++word) {
      bytes.push_back(static_cast<std::byte>(word & 0xFF));
      if (count == 65536) {
        bytes.push_back(static_cast<std::byte>(word >> 8));
      }
    }
    std::vector<float> values(count);
    const auto columns = static_cast<std::int64_t>(count);
    model::load_matrix({bytes.data(), dtype, 1, columns, columns, 1}, {}, {}, {}, values);
    for (std::size_t word = 0; word < count; ++word) {
      const double expected = core::decode(word, dtype);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(values[word])) << word;
      } else {
        ASSERT_EQ(static_cast<double>(values[word]), expected) << word;
        ASSERT_EQ(std::signbit(values[word]), std::signbit(expected)) << word;
      }
    }
  }
}

TEST(LoadMatrix, conversions_equal_the_codec) {
  std::mt19937 random(9);
  for (int i = 0; i < 200'000; ++i) {
    auto word = static_cast<std::uint32_t>(random());
    word = i % 3 == 0 ? (word & 0xFFFFE000U) | 0x1000U : word;  // ties of TF32
    const auto x = std::bit_cast<float>(word);
    for (const Dtype dtype : {Dtype::tf32, Dtype::bf16}) {
      for (const core::Rounding rounding : {core::Rounding::nearest_even, core::Rounding::toward_zero}) {
        const double expected = core::round_to(static_cast<double>(x), dtype, core::Overflow::ieee, rounding);
        const float got = model::converted(x, dtype, rounding);
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(got));
        } else {
          ASSERT_EQ(static_cast<double>(got), expected) << std::hexfloat << x;
        }
      }
    }
  }
}

TEST(LoadMatrix, orders_strides_and_flush) {
  const std::vector<float> stored = {1, 2, 3, 0x1p-127F, 4, 5, 6, 0x1p-126F};
  const MatrixView view{reinterpret_cast<const std::byte*>(stored.data()), Dtype::fp32, 2, 4, 4, 1};
  std::vector<float> to(4);
  const std::vector<std::int64_t> columns = {3, 1};
  model::load_matrix(view, {}, columns, {}, to);
  EXPECT_EQ(to, (std::vector<float>{0x1p-127F, 2, 0x1p-126F, 5}));
  model::OperandConversion flush;
  flush.flushes_subnormals = true;
  model::load_matrix(view.transposed(), columns, {}, flush, to);
  EXPECT_EQ(to, (std::vector<float>{0, 0x1p-126F, 2, 5}));
  std::vector<float> wrong(3);
  EXPECT_ANY_THROW(model::load_matrix(view, {}, columns, {}, wrong));
}

}  // namespace
