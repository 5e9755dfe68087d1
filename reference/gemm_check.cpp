#include "reference/gemm_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/rng.hpp"
#include "reference/matmul.hpp"
#include "reference/twofold.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kSpotChecks = 64;

bool agree(double got, double want, double tolerance) {
  if (std::isnan(want) || std::isnan(got)) {
    return std::isnan(want) && std::isnan(got);
  }
  return got == want || std::abs(got - want) <= tolerance;
}

/// The element, of `count`, to check as number `spot`.
std::size_t spot_element(std::size_t spot, std::size_t count) {
  if (count <= kSpotChecks) {
    return spot;
  }
  const core::PhiloxCounter words = core::philox4x32({static_cast<std::uint32_t>(spot), 0, 0, 0}, {0, 0});
  return (std::uint64_t{words[0]} << 32 | words[1]) % count;
}

}  // namespace

void check_against_twofold(const GemmOperands& g, std::span<const double> d, std::span<const std::int64_t> indices) {
  const Epilogue epilogue = parse_epilogue(g.params);
  // The constant added to k covers the scale, the two additions and the epilogue.
  const double unit = (static_cast<double>(g.shape.k) + 16) * 0x1p-53;
  constexpr double kSteepest = 1.13;  // max |gelu'| = 1.1289
  core::parallel_for(std::min(kSpotChecks, d.size()), [&](std::size_t spot) {
    const std::size_t i = spot_element(spot, d.size());
    const std::int64_t index = indices.empty() ? static_cast<std::int64_t>(i) : indices[i];
    const TwofoldOutput output = twofold_output(g, index);
    const double want = apply_epilogue(epilogue, output.z);
    if (!agree(d[i], want, unit * kSteepest * output.magnitude)) {
      std::ostringstream text;
      text.precision(17);
      text << "reference of gemm: " << matmul_implementation() << " gives " << d[i] << " for output " << index
           << ", twofold arithmetic gives " << want;
      throw core::InternalError(text.str());
    }
  });
}

}  // namespace numcheck::reference
