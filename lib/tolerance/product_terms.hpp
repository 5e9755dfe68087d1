// Rows and columns of a product's operands, for replays of a few outputs.
#pragma once

#include <cstdint>

#include "op/gemm.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// k numbers of an operand, one stride apart.
struct TermsOf {
  const double* data;
  std::int64_t stride;

  [[nodiscard]] double at(std::int64_t t) const { return data[t * stride]; }
};

[[nodiscard]] inline TermsOf row_of(const op::GemmParams& p, const op::Operand& a, std::int64_t i) {
  return p.trans_a ? TermsOf{a.data + i, a.cols} : TermsOf{a.data + i * a.cols, 1};
}

[[nodiscard]] inline TermsOf column_of(const op::GemmParams& p, const op::Operand& b, std::int64_t j) {
  return p.trans_b ? TermsOf{b.data + j * b.cols, 1} : TermsOf{b.data + j, b.cols};
}

/// The middle of the s-th of `parts` of a length; where that is shorter, they repeat.
[[nodiscard]] constexpr std::int64_t middle_of(std::int64_t s, std::int64_t parts, std::int64_t length) noexcept {
  return (2 * s + 1) * length / (2 * parts);
}

}  // namespace numcheck::tolerance
