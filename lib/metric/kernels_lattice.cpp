// FP32 outputs that end in zeros. Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "metric/gate_exact.hpp"
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

constexpr float kNear = 0.25F;      ///< of the lattice's spacing: a smaller error cannot end on the lattice
constexpr float kMostOften = 0.5F;  ///< probability from which being on the lattice tells nothing

/// Elements of a group, as FP32 holds them.
struct Group {
  Vf y;        ///< |RN(y)| in ulps, an integer
  Vf inverse;  ///< 1 / ulp
  Wi bits;     ///< of got
};

inline Group group_at(const SegmentView& segment, std::size_t i, const InverseUlp& units) {
  alignas(64) float y[kFloats];
  alignas(64) float inverse[kFloats];
  alignas(64) float got[kFloats];
  for (int j = 0; j < kFloats; j += kWidth) {
    const std::size_t at = i + static_cast<std::size_t>(j);
    const Vd value = load(segment.expected + at);
    const Vd unit = units.at(value);
    store_narrow(y + j, magnitude_of(value * unit));
    store_narrow(inverse + j, unit);
    store_narrow(got + j, load(segment.got + at));
  }
  return {load(y), load(inverse), Wi(load(got))};
}

struct Running {
  Wi count[kLattices][kGroups]{};
  Wi found[kLattices][kGroups]{};
  Vf expected[kLattices][kGroups]{};
};

/// Counts the group for each lattice; `spacing` is that of correct results, in ulps.
inline void add_group(const Group& x, Vf spacing, const LatticeConstants& constants, int g, Running& sums) {
  for (int l = 0; l < kLattices; ++l) {
    const float unit = 1.0F / static_cast<float>(1 << kLatticeBits[l]);
    const Vf probability = spacing * unit + constants.share[l];
    const Vf cells = x.y * unit;
    const Vf off = magnitude_of(cells - nearest_integer(cells));
    // False for what is NaN or infinite: products of numbers at the ends of FP32's range.
    const Wi counted = (off >= kNear) & (probability <= kMostOften);
    const Wi on = (x.bits & ((1 << kLatticeBits[l]) - 1)) == 0;
    sums.count[l][g] -= counted;
    sums.found[l][g] -= counted & on;
    sums.expected[l][g] += Vf(Wi(probability) & counted);
  }
}

template <class Lane, class Vector>
void add_lanes(Lane (&lanes)[kLanes], const Vector (&group)[kGroups]) {
  for (int i = 0; i < kLanes; ++i) {
    lanes[i] += static_cast<Lane>(group[i / kFloats][i % kFloats]);
  }
}

}  // namespace

void lattice(const SegmentView& segment, const FormatConstants& format, const LatticeConstants& given,
             LatticeSums& sums) {
  const InverseUlp units(format);
  const LatticeConstants c = given;
  Running running;
  for (std::size_t i = 0; i < segment.size; i += kLanes) {
    for (int g = 0; g < kGroups; ++g) {
      const std::size_t at = i + static_cast<std::size_t>(g * kFloats);
      const Group x = group_at(segment, at, units);
      const Vf a = load(segment.terms + at);  // A itself, of which gelu may leave little in `magnitude`
      const Vf root = load(segment.deviation + at);
      const Vf spacing = c.value * x.y + (c.second * root + c.magnitude * a + c.absolute) * x.inverse;
      add_group(x, spacing, c, g, running);
    }
  }
  for (int l = 0; l < kLattices; ++l) {
    add_lanes(sums.count[l], running.count[l]);
    add_lanes(sums.found[l], running.found[l]);
    add_lanes(sums.expected[l], running.expected[l]);
  }
}

}  // namespace numcheck::metric::NUMCHECK_ISA
