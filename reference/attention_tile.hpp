// Weights and gradients of attention scores, tile by tile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/attention_problem.hpp"

namespace numcheck::reference {

/// Positions [begin, end) of a sequence.
struct Positions {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// One head of one sequence, with what its gradients start from. See op::AttentionBwdParams.
struct GradientHead {
  std::int64_t batch = 0;
  std::int64_t index = 0;
  Lengths lengths;
  HeadRows queries, keys, values, gradient, output;
  const double* lse = nullptr;
  std::vector<double> dot;  ///< D of each query
};

/// A case of op::attention_bwd. Operands must outlive it.
class AttentionGradients {
 public:
  AttentionGradients(const op::AttentionParams& p, std::span<const op::Operand> operands);

  [[nodiscard]] const AttentionProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] const op::AttentionParams& params() const noexcept { return problem_.params(); }
  [[nodiscard]] GradientHead head(std::int64_t batch, std::int64_t index) const;

 private:
  AttentionProblem problem_;
  const op::Operand& gradient_;
  const op::Operand& output_;
  const op::Operand& lse_;
};

/// p, ds and dt of some queries and keys, queries x keys; zero where a query does not see a key.
class GradientTile {
 public:
  GradientTile(const AttentionGradients& gradients, const GradientHead& head, const Positions& queries,
               const Positions& keys);

  [[nodiscard]] const std::vector<double>& p() const noexcept { return p_; }
  [[nodiscard]] const std::vector<double>& ds() const noexcept { return ds_; }
  [[nodiscard]] const std::vector<double>& dt() const noexcept { return dt_; }

  /// out[i] += sum_j factor[i, j] rows[j] over the keys of the tile, or with `to_keys` out[j] += sum_i factor[i, j] rows[i].
  /// Only pairs that see each other count: rows may hold what is not finite.
  void add(const std::vector<double>& factor, bool to_keys, const HeadRows& rows, std::int64_t channels,
           std::span<double> out) const;

 private:
  void product(const HeadRows& left, const HeadRows& right, std::int64_t channels, std::vector<double>& out) const;
  [[nodiscard]] op::KeyRange seen_by(std::int64_t i) const;
  /// Turns row i of the two products q k and do v into p, ds and dt.
  void differentiate(std::int64_t i);

  const AttentionGradients& gradients_;
  const GradientHead& head_;
  Positions queries_, keys_;
  std::vector<double> p_, ds_, dt_;
};

}  // namespace numcheck::reference
