#include "kernels/sim/hadamard.hpp"

#include <array>

#include "core/codec.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::size_t kPoints = 16;
/// Bit j: element j changes its sign.
constexpr unsigned kSigns = 0b1101'0111'1110'1000;

void transform(float* x, std::size_t step, std::string_view fault) {
  std::array<float, kPoints> points{};
  for (std::size_t j = 0; j < kPoints; ++j) {
    const bool turns = (kSigns >> j & 1U) != 0 && fault != "hadamard_unsigned";
    points.at(j) = turns ? -x[j * step] : x[j * step];
  }
  for (std::size_t half = kPoints / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < kPoints; ++j) {
      if (j / half % 2 == 0) {
        const float a = points.at(j), b = points.at(j + half);
        points.at(j) = a + b;
        points.at(j + half) = a - b;
      }
    }
  }
  for (std::size_t j = 0; j < kPoints; ++j) {
    const float y = (points.at(j) + 0.0F) / 4;  // a sum of zeros is +0, whatever the order
    x[j * step] = fault == "hadamard_unrounded"
                      ? y
                      : static_cast<float>(core::round_to(static_cast<double>(y), core::Dtype::bf16));
  }
}

}  // namespace

std::vector<float> hadamard_transformed(std::vector<float> x, const HadamardLines& lines, std::string_view fault) {
  const std::size_t step = lines.along_columns ? lines.cols : 1;
  const std::size_t groups = (lines.along_columns ? lines.rows : lines.cols) / kPoints;
  for (std::size_t line = 0; line < (lines.along_columns ? lines.cols : lines.rows); ++line) {
    const std::size_t first = line * (lines.along_columns ? 1 : lines.cols);
    for (std::size_t group = 0; group < groups; ++group) {
      transform(x.data() + first + group * kPoints * step, step, fault);
    }
  }
  return x;
}

}  // namespace numcheck::kernels::sim
