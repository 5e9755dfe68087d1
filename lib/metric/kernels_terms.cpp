// Errors and values of sums against the squares and magnitudes of their terms. Compiled once per instruction set: NUMCHECK_ISA is
// the namespace.
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// One part of every group.
struct PartTerms {
  Vd rho2;
  Vi scaled, conditioned;
  Vi condition[kConditions];

  PartTerms(const TermSums& sums, int lane)
      : rho2(load(sums.rho2 + lane)), scaled(load(sums.scaled + lane)), conditioned(load(sums.conditioned + lane)) {
    for (int c = 0; c < kConditions; ++c) {
      condition[c] = load(sums.condition[c] + lane);
    }
  }

  void write_back(TermSums& sums, int lane) const {
    store(sums.rho2 + lane, rho2);
    store(sums.scaled + lane, scaled);
    store(sums.conditioned + lane, conditioned);
    for (int c = 0; c < kConditions; ++c) {
      store(sums.condition[c] + lane, condition[c]);
    }
  }

  inline void add_spread(Vd error, Vd root, Vi in) {
    const Vd rho = error / root;
    rho2 += masked(rho * rho, in);
    scaled -= in;
  }

  /// Few conditions are large: most groups stop at 100.
  inline void add_condition(Vd abs_y, Vd a, Vi known) {
    const Vi in = known & (abs_y > 0.0);
    conditioned -= in;
    Vd reach = abs_y;
    for (Vi& count : condition) {
      reach *= 10.0;
      const Vi above = (a > reach) & in;
      count -= above;
      if (!any(above)) {
        return;
      }
    }
  }
};

/// FP32 holds x, a sum of magnitudes or the root of one of squares.
inline Vi is_held(Vd x) {
  return (x >= kLeastTermSum) & (x < __builtin_inf());
}

}  // namespace

void terms(const SegmentView& segment, const ModelConstants& model, const TermConstants& constants, TermSums& sums) {
  const Vd scale = splat(model.scale);
  const Vi always = constants.clipped ? Vi{} : ~Vi{};
  for (int lane = 0; lane < kLanes; lane += kWidth) {
    PartTerms part(sums, lane);
    for (auto i = static_cast<std::size_t>(lane); i < segment.size; i += kLanes) {
      const Vd y = load(segment.expected + i);
      const Vd abs_y = magnitude_of(y);
      const Vd error = magnitude_of(load(segment.got + i) - y);
      const Vd a = load_wide(segment.terms + i);
      const Vd root = load_wide(segment.deviation + i);
      part.add_spread(error, scale * root, is_held(root) & (always | (abs_y > 0.0)));
      part.add_condition(abs_y, scale * a, is_held(a));
    }
    part.write_back(sums, lane);
  }
}

}  // namespace numcheck::metric::NUMCHECK_ISA
