// The range of k, and what happened to it, that explain the residuals of a product best.
#pragma once

#include <cstdint>

#include "reference/gemm_residuals.hpp"

namespace numcheck::reference {

/// [begin, end) of k.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

struct Explanation {
  enum class Kind { missing, twice, elsewhere } kind = Kind::missing;
  Range range;
  Source source;
  double share = 0;
};

/// The best of some 10^5 hypotheses: ranges between the borders of a grid of k, of its last and first elements and of its
/// halves to eighths, refined to single elements; the same, and tails of tiles and stages, read from elsewhere. Of equal
/// explanations the shortest range. Its share is at most 0 if nothing explains anything.
[[nodiscard]] Explanation best_explanation(const GemmResiduals& problem);

/// Whether as many products elsewhere in k explain the error as well, but for `lead`: then the data cannot tell where
/// the products are.
[[nodiscard]] bool is_ambiguous(const GemmResiduals& problem, const Explanation& found, double lead);

}  // namespace numcheck::reference
