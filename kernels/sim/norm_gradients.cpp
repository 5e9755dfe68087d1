#include "kernels/sim/norm_gradients.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "kernels/sim/norm_rows.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::size_t kLanes = 64;    ///< partial sums per column
constexpr std::size_t kColumns = 16;  ///< columns per task

struct Problem {
  std::vector<float> dz, x, mu, rsigma, factors, add;
  std::size_t rows = 0;
  std::size_t hidden = 0;
  bool centred = false;  ///< LayerNorm
  std::string fault;

  [[nodiscard]] float normalised(std::size_t i, std::size_t j) const {
    const std::size_t row = statistics_row(i, fault);
    return kept((x[i * hidden + j] - (centred ? mu[row] : 0.0F)) * rsigma[row], fault);
  }
};

Problem problem_of(const op::NormParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  Problem problem;
  problem.dz = read_kept(ports, "dz", fault);
  problem.x = read_kept(ports, "x", fault);
  problem.rsigma = read_kept(ports, "rsigma", fault);
  problem.factors = norm_factors(ports, p, fault);
  problem.centred = find_port(ports, "mu") != nullptr;
  if (problem.centred) {
    problem.mu = read_kept(ports, "mu", fault);
  }
  if (find_port(ports, "add") != nullptr && fault != "add_missing") {
    problem.add = read_kept(ports, "add", fault);
  }
  problem.rows = static_cast<std::size_t>(p.rows);
  problem.hidden = static_cast<std::size_t>(p.hidden);
  problem.fault = fault;
  return problem;
}

void row_gradient(const Problem& p, std::size_t i, std::span<float> dx) {
  const float* dz = p.dz.data() + i * p.hidden;
  const std::size_t terms = p.fault == "last_element_missing" ? p.hidden - 1 : p.hidden;
  const float count = static_cast<float>(p.fault == "mean_over_n_minus_1" ? p.hidden - 1 : p.hidden);
  const auto weighted = [&](std::size_t j) { return kept(p.factors[j] * dz[j], p.fault); };
  float mean = 0;
  if (p.centred && p.fault != "mean_term_missing") {
    mean = block_sum(terms, weighted) / count;
  }
  float along = 0;
  if (p.fault != "projection_missing") {
    along = block_sum(terms, [&](std::size_t j) { return weighted(j) * p.normalised(i, j); }) / count;
  }
  const float rsigma = p.rsigma[statistics_row(i, p.fault)];
  if (const float cube = rsigma * rsigma * rsigma; p.fault == "rsigma_cubed" && !std::isnormal(cube)) {
    along = std::isinf(cube) ? std::numeric_limits<float>::quiet_NaN() : 0;  // times x - mu, which may be 0
  }
  for (std::size_t j = 0; j < p.hidden; ++j) {
    dx[j] = rsigma * (weighted(j) - (along * p.normalised(i, j) + mean));
    if (!p.add.empty()) {
      dx[j] += p.add[i * p.hidden + j];
    }
  }
}

float in_bf16(float value) {
  return static_cast<float>(core::round_to(static_cast<double>(value), core::Dtype::bf16));
}

/// Column sums of term(i, j): 64 interleaved lanes of rows, added in a tree.
template <class Term>
std::vector<float> column_sums(const Problem& p, const Term& term) {
  const std::size_t rows = p.fault == "last_row_missing" ? p.rows - 1 : p.rows;
  std::vector<float> sums(p.hidden);
  core::parallel_chunks(p.hidden, kColumns, [&](std::size_t, std::size_t begin, std::size_t end) {
    std::array<std::array<float, kColumns>, kLanes> lanes{};
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = begin; j < end; ++j) {
        lanes[i % kLanes][j - begin] += term(i, j);
      }
    }
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane) {
        std::ranges::transform(lanes[lane], lanes[lane + half], lanes[lane].begin(), std::plus<>());
      }
    }
    std::copy_n(lanes[0].begin(), end - begin, sums.begin() + static_cast<std::ptrdiff_t>(begin));
  });
  return sums;
}

std::vector<float> gamma_gradient(const Problem& p) {
  const auto term = [&p](std::size_t i, std::size_t j) { return p.dz[i * p.hidden + j] * p.normalised(i, j); };
  if (p.fault != "bf16_partial_sums") {
    return column_sums(p, term);
  }
  std::vector<float> sums(p.hidden);
  for (std::size_t j = 0; j < p.hidden; ++j) {
    for (std::size_t first = 0; first < p.rows; first += kLanes) {
      const std::size_t size = std::min(kLanes, p.rows - first);
      sums[j] = in_bf16(sums[j] + in_bf16(block_sum(size, [&](std::size_t i) { return term(first + i, j); })));
    }
  }
  return sums;
}

}  // namespace

void run_norm_gradients(const op::NormParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const Problem problem = problem_of(p, ports, fault);
  std::vector<float> dx(problem.x.size());
  core::parallel_for(problem.rows, [&](std::size_t i) {
    row_gradient(problem, i, std::span(dx).subspan(i * problem.hidden, problem.hidden));
  });
  write_kept(ports, "dx", dx, fault);
  write_kept(ports, "dgamma", gamma_gradient(problem), fault);
  if (problem.centred) {
    write_kept(ports, "dbeta",
               column_sums(problem, [&](std::size_t i, std::size_t j) { return problem.dz[i * problem.hidden + j]; }),
               fault);
  }
}

}  // namespace numcheck::kernels::sim
