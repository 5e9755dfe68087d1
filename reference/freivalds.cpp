#include "reference/freivalds.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/rng.hpp"
#include "reference/gemm_operands.hpp"
#include "reference/mersenne61.hpp"

namespace numcheck::reference {
namespace {

using Index = std::int64_t;
using Residues = std::vector<std::uint64_t>;

constexpr std::size_t kRowsPerTask = 64;
constexpr std::size_t kColumnsPerTask = 512;

std::uint64_t dot(const double* values, const Residues& vector) {
  std::uint64_t sum = 0;
  for (std::size_t j = 0; j < vector.size(); ++j) {
    sum = mersenne61::add(sum, mersenne61::multiply(mersenne61::residue(values[j]), vector[j]));
  }
  return sum;
}

/// matrix * vector, matrix stored rows x vector.size().
Residues times(const double* matrix, Index rows, const Residues& vector) {
  Residues out(static_cast<std::size_t>(rows));
  core::parallel_chunks(out.size(), kRowsPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      out[i] = dot(matrix + i * vector.size(), vector);
    }
  });
  return out;
}

/// matrix^T * vector, matrix stored vector.size() x cols.
Residues transposed_times(const double* matrix, Index cols, const Residues& vector) {
  Residues out(static_cast<std::size_t>(cols), 0);
  core::parallel_chunks(out.size(), kColumnsPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t t = 0; t < vector.size(); ++t) {
      const double* row = matrix + t * out.size();
      for (std::size_t j = begin; j < end; ++j) {
        out[j] = mersenne61::add(out[j], mersenne61::multiply(mersenne61::residue(row[j]), vector[t]));
      }
    }
  });
  return out;
}

Residues random_vector(Index size, std::uint64_t seed, Index batch) {
  Residues out(static_cast<std::size_t>(size));
  const core::PhiloxKey key = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (std::size_t j = 0; j < out.size(); ++j) {
    const core::PhiloxCounter counter = {static_cast<std::uint32_t>(j), static_cast<std::uint32_t>(j >> 32),
                                         static_cast<std::uint32_t>(batch), 0};
    const core::PhiloxCounter words = core::philox4x32(counter, key);
    out[j] = (std::uint64_t{words[0]} << 32 | words[1]) % mersenne61::kPrime;
  }
  return out;
}

void check_operands(const GemmOperands& g, std::size_t outputs) {
  if (parse_epilogue(g.params) != Epilogue::none) {
    throw core::InternalError("freivalds: epilogue \"" + g.params.epilogue + "\" is not linear");
  }
  if (outputs != static_cast<std::size_t>(g.outputs())) {
    throw core::InternalError("freivalds: " + std::to_string(outputs) + " outputs given, the parameters say " +
                              std::to_string(g.outputs()));
  }
  if (!all_finite(g)) {
    throw core::InternalError("freivalds: an operand is not finite");
  }
}

/// Residues of (alpha sA sB op(A) op(B) + beta C + bias) r, one per row of one matrix of the batch.
Residues expected_rows(const GemmOperands& g, Index batch, const Residues& vector) {
  const ProductShape& s = g.shape;
  const double* a = g.a.data + batch * s.m * s.k;
  const double* b = g.b.data + batch * s.k * s.n;
  const Residues inner = g.b.transposed ? transposed_times(b, s.k, vector) : times(b, s.k, vector);
  Residues rows = g.a.transposed ? transposed_times(a, s.m, inner) : times(a, s.m, inner);
  const std::uint64_t scale = mersenne61::residue(g.product_scale);
  for (std::uint64_t& row : rows) {
    row = mersenne61::multiply(row, scale);
  }
  if (g.c != nullptr) {
    const Residues addend = times(g.c + batch * s.m * s.n, s.m, vector);
    const std::uint64_t c_scale = mersenne61::residue(g.c_scale);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i] = mersenne61::add(rows[i], mersenne61::multiply(addend[i], c_scale));
    }
  }
  if (g.bias != nullptr) {
    const std::uint64_t bias = mersenne61::multiply(dot(g.bias, vector), mersenne61::residue(g.bias_scale));
    for (std::uint64_t& row : rows) {
      row = mersenne61::add(row, bias);
    }
  }
  return rows;
}

}  // namespace

std::optional<std::int64_t> freivalds_wrong_row(const op::ReferenceRequest& request, std::span<const double> d,
                                                std::uint64_t seed) {
  const GemmOperands g = gemm_operands(request);
  const ProductShape& s = g.shape;
  check_operands(g, d.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (!std::isfinite(d[i])) {
      return static_cast<Index>(i) / s.n;
    }
  }
  for (Index batch = 0; batch < s.batch; ++batch) {
    const Residues vector = random_vector(s.n, seed, batch);
    const Residues expected = expected_rows(g, batch, vector);
    const Residues got = times(d.data() + batch * s.m * s.n, s.m, vector);
    const auto wrong = std::ranges::mismatch(got, expected).in1;
    if (wrong != got.end()) {
      return batch * s.m + (wrong - got.begin());
    }
  }
  return std::nullopt;
}

bool freivalds_holds(const op::ReferenceRequest& request, std::span<const double> d, std::uint64_t seed) {
  return !freivalds_wrong_row(request, d, seed).has_value();
}

}  // namespace numcheck::reference
