#include "reference/casts.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "reference/cast_kernels.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;

double largest_of(std::span<const double> x, double (*largest_of_part)(const double*, std::size_t)) {
  std::vector<double> largest((x.size() + kChunk - 1) / kChunk);
  core::parallel_chunks(x.size(), kChunk, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    largest[chunk] = largest_of_part(x.data() + begin, end - begin);
  });
  return largest.empty() ? 0 : std::ranges::max(largest);
}

}  // namespace

const CastKernels& cast_kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(cast_kernels());
}

void scale_into(std::span<const double> x, double scale, double most, std::span<double> out) {
  const CastKernels& kernels = cast_kernels();
  core::parallel_chunks(x.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    kernels.scaled(x.data() + begin, end - begin, static_cast<float>(scale), most, out.data() + begin);
  });
}

double amax_of(std::span<const double> x) {
  return largest_of(x, cast_kernels().largest_magnitude);
}

double largest_value(std::span<const double> x) {
  return largest_of(x, cast_kernels().largest_value);
}

}  // namespace numcheck::reference
