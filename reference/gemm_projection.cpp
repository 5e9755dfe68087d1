#include "reference/gemm_projection.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/rng.hpp"
#include "reference/gemm_operands.hpp"

namespace numcheck::reference {
namespace {

using Index = std::int64_t;

constexpr std::size_t kRowsPerTask = 32;

std::size_t size(Index n) {
  return static_cast<std::size_t>(n);
}

std::vector<double> random_signs(Index count) {
  std::vector<double> signs(size(count));
  for (std::size_t j = 0; j < signs.size(); ++j) {
    const core::PhiloxCounter words = core::philox4x32({static_cast<std::uint32_t>(j), 0, 0, 0}, {1, 0});
    signs[j] = (words[0] & 1) == 0 ? 1 : -1;
  }
  return signs;
}

/// For each t in [0, k) and each block: sum_j r_j b_tj, and sum_j b_tj^2.
struct Sides {
  std::vector<double> projected, squares;

  Sides(const GemmOperands& g, Index batch, std::span<const double> signs, Index blocks)
      : projected(size(g.shape.k * blocks)), squares(size(g.shape.k * blocks)) {
    const ProductShape& s = g.shape;
    const double* b = g.b.data + batch * s.k * s.n;
    core::parallel_chunks(size(s.k), kRowsPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
      const auto add = [&](std::size_t t, Index j, double x) {
        const std::size_t at = t * size(blocks) + size(j / op::WholeOutput::kBlock);
        projected[at] += signs[size(j)] * x;
        squares[at] += x * x;
      };
      for (Index j = 0; g.b.transposed && j < s.n; ++j) {
        for (std::size_t t = begin; t < end; ++t) {
          add(t, j, b[size(j * s.k) + t]);
        }
      }
      for (std::size_t t = begin; !g.b.transposed && t < end; ++t) {
        for (Index j = 0; j < s.n; ++j) {
          add(t, j, b[t * size(s.n) + size(j)]);
        }
      }
    });
  }
};

/// Adds products of rows [begin, end) of one matrix with both sides.
void multiply_rows(const GemmOperands& g, Index batch, const Sides& sides, std::size_t begin, std::size_t end,
                   std::span<double> products, std::span<double> squares) {
  const ProductShape& s = g.shape;
  const double* a = g.a.data + batch * s.m * s.k;
  const std::size_t blocks = s.k == 0 ? 0 : sides.projected.size() / size(s.k);
  for (std::size_t t = 0; t < size(s.k); ++t) {
    const double *projected = sides.projected.data() + t * blocks, *square = sides.squares.data() + t * blocks;
    for (std::size_t i = begin; i < end; ++i) {
      const double x = g.a.transposed ? a[t * size(s.m) + i] : a[i * size(s.k) + t], x2 = x * x;
      double *product_row = products.data() + (i - begin) * blocks, *square_row = squares.data() + (i - begin) * blocks;
      for (std::size_t block = 0; block < blocks; ++block) {
        product_row[block] += x * projected[block];
        square_row[block] += x2 * square[block];
      }
    }
  }
}

/// sum_j r_j (d_j - beta C_j - bias_j) of one row, by block.
void project_row(const GemmOperands& g, Index row, std::span<const double> signs, std::span<const double> d,
                 std::span<double> sums) {
  for (std::size_t j = 0; j < d.size(); ++j) {
    const double c = g.c == nullptr ? 0 : g.c_scale * g.c[row * g.shape.n + static_cast<Index>(j)];
    const double bias = g.bias == nullptr ? 0 : g.bias_scale * g.bias[j];
    sums[j / size(op::WholeOutput::kBlock)] += signs[j] * (d[j] - c - bias);
  }
}

}  // namespace

std::optional<op::Projection> gemm_projection(const op::ReferenceRequest& request, const op::WholeOutput& output) {
  const GemmOperands g = gemm_operands(request);
  const ProductShape& s = g.shape;
  if (output.rows != s.batch * s.m || output.cols != s.n) {
    throw core::InternalError("the projected output is not that of the parameters");
  }
  if (parse_epilogue(g.params) != Epilogue::none || !all_finite(g)) {
    return {};
  }
  const std::vector<double> signs = random_signs(s.n);
  const std::size_t blocks = size(output.blocks());
  op::Projection result{std::vector<double>(size(output.rows) * blocks),
                        std::vector<double>(size(output.rows) * blocks)};
  for (Index batch = 0; batch < s.batch; ++batch) {
    const Sides sides(g, batch, signs, output.blocks());
    core::parallel_chunks(size(s.m), kRowsPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
      std::vector<double> products((end - begin) * blocks), squares(products.size()), row(size(s.n));
      multiply_rows(g, batch, sides, begin, end, products, squares);
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t at = (size(batch * s.m) + i) * blocks;
        output.read(batch * s.m + static_cast<Index>(i), row);
        project_row(g, batch * s.m + static_cast<Index>(i), signs, row, {result.error.data() + at, blocks});
        for (std::size_t block = 0; block < blocks; ++block) {
          result.error[at + block] -= g.product_scale * products[(i - begin) * blocks + block];
          result.second[at + block] = g.product_scale * g.product_scale * squares[(i - begin) * blocks + block];
        }
      }
    });
  }
  return result;
}

}  // namespace numcheck::reference
