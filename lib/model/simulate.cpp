#include "model/simulate.hpp"

#include <algorithm>
#include <vector>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "model/product.hpp"

namespace numcheck::model {
namespace {

using core::Dtype;

std::size_t count_of(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(rows * columns);
}

/// Operands as the product takes them, in memory of their own.
struct Loaded {
  core::Buffer<float> a;
  core::Buffer<float> b;
  std::int64_t k = 0;
};

Loaded load(const GemmTask& task) {
  const auto& order = task.schedule.k_order;
  Loaded loaded;
  loaded.k = order.empty() ? task.a.columns : static_cast<std::int64_t>(order.size());
  loaded.a = core::Buffer<float>(count_of(task.a.rows, loaded.k));
  loaded.b = core::Buffer<float>(count_of(loaded.k, task.b.columns));
  load_matrix(task.a, {}, order, task.conversion, loaded.a.span());
  load_matrix(task.b, order, {}, task.conversion, loaded.b.span());
  for (std::int64_t i = 0; task.tail_from_next_row > 0 && i + 1 < task.a.rows; ++i) {
    float* end = loaded.a.data() + (i + 1) * loaded.k;
    std::copy(end + loaded.k - task.tail_from_next_row, end + loaded.k, end - task.tail_from_next_row);
  }
  return loaded;
}

float high_part(float x) {
  return converted(x, Dtype::tf32, core::Rounding::nearest_even);
}

float low_part(float x) {
  const float high = high_part(x);
  return high_part(x - high);
}

/// Where the product with source index t goes in pass 0, 1 or 2: the passes of a step of L follow each other.
std::int64_t expanded_index(std::int64_t t, int pass, int L, std::int64_t k) {
  const std::int64_t first = t / L * L;
  const std::int64_t length = std::min<std::int64_t>(L, k - first);
  return 3 * first + pass * length + (t - first);
}

Loaded split_in_three(const Loaded& whole, std::int64_t m, std::int64_t n, int L) {
  Loaded parts;
  const std::int64_t k = whole.k;
  parts.k = 3 * k;
  parts.a = core::Buffer<float>(count_of(m, parts.k));
  parts.b = core::Buffer<float>(count_of(parts.k, n));
  core::parallel_for(static_cast<std::size_t>(m), [&](std::size_t row) {
    const auto i = static_cast<std::int64_t>(row);
    for (std::int64_t t = 0; t < k; ++t) {
      const float x = whole.a[count_of(i, k) + static_cast<std::size_t>(t)];
      for (int pass = 0; pass < 3; ++pass) {
        parts.a[static_cast<std::size_t>(i * parts.k + expanded_index(t, pass, L, k))] =
            pass == 1 ? low_part(x) : high_part(x);
      }
    }
  });
  core::parallel_for(static_cast<std::size_t>(k), [&](std::size_t row) {
    const auto t = static_cast<std::int64_t>(row);
    for (int pass = 0; pass < 3; ++pass) {
      float* to = parts.b.data() + expanded_index(t, pass, L, k) * n;
      const float* from = whole.b.data() + t * n;
      for (std::int64_t j = 0; j < n; ++j) {
        to[j] = pass == 0 ? low_part(from[j]) : high_part(from[j]);
      }
    }
  });
  return parts;
}

}  // namespace

float simulate_gemm(const GemmTask& task) {
  const std::int64_t m = task.a.rows;
  const std::int64_t n = task.b.columns;
  if (task.a.columns != task.b.rows) {
    throw core::InternalError("simulate_gemm: the operands differ in k");
  }
  if (m == 0 || n == 0) {
    return 0;
  }
  Loaded loaded = load(task);
  if (task.three_tf32) {
    loaded = split_in_three(loaded, m, n, task.schedule.step.L);
  }
  core::Buffer<float> acc(count_of(m, n));
  Schedule schedule = task.schedule;
  schedule.k_order.clear();
  ProductOperands operands{loaded.a.span(), loaded.b.span(), m, n, loaded.k};
  operands.a_emin = core::dtype_info(task.a.dtype).emin;
  operands.b_emin = core::dtype_info(task.b.dtype).emin;
  operands.scales = task.scales;
  simulate_product(schedule, operands, acc.span());
  return apply_epilogue(task.epilogue, acc.span(), m, n, task.d, task.transposes_output);
}

}  // namespace numcheck::model
