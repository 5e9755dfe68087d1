// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "reference/softmax_kernels.hpp"

#include "reference/lanes.hpp"
#include "reference/softmax_formula.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

using TrackedDoubles = tolerance::TrackedOf<Doubles>;

TrackedDoubles exponential_of_score(const Doubles& x, const Doubles& scale, const Doubles& maximum,
                                    const Doubles& bound) {
  const TrackedDoubles score = TrackedDoubles(x) * TrackedDoubles(scale);
  const TrackedDoubles d = softmax_difference(score, maximum, bound);
  const Doubles y = exponential_of(d.y);
  return softmax_exponential(d, y, softmax_carried(d, y));
}

ScoreExtent extent(const double* x, std::size_t columns, double scale) {
  Doubles largest(-kInfinity), most(0.0), check(0.0);
  std::size_t j = 0;
  for (; j + kPartLanes <= columns; j += kPartLanes) {
    const Doubles t = Doubles::load(x + j) * scale;
    largest = larger(t, largest);
    most = larger(magnitude(t), most);
    check += t * 0.0;
  }
  ScoreExtent all{-kInfinity, 0};
  double nan = 0;
  const auto take = [&all](double t, double size) {
    all.largest = t > all.largest ? t : all.largest;
    all.magnitude = size > all.magnitude ? size : all.magnitude;
  };
  for (std::size_t l = 0; l < kPartLanes; ++l) {
    take(largest.x[l], most.x[l]);
    nan += check.x[l];
  }
  for (; j < columns; ++j) {
    const double t = x[j] * scale;
    take(t, t < 0 ? -t : t);
    nan += t * 0.0;
  }
  return {all.largest + nan, all.magnitude + nan};
}

void sums(const double* interleaved, std::size_t columns, double scale, const double* maximum, const double* bound,
          TrackedLanes& out) {
  tolerance::Sum<TrackedDoubles> sum;
  const Doubles largest = Doubles::load(maximum), error = Doubles::load(bound);
  for (std::size_t j = 0; j < columns; ++j) {
    sum.add(exponential_of_score(Doubles::load(interleaved + j * kPartLanes), Doubles(scale), largest, error));
  }
  const TrackedDoubles result = sum.result();
  result.y.store(out.y);
  result.b.store(out.b);
  result.v.store(out.v);
}

void put(const double* x, double scale, const SoftmaxStatistics& row, double* value, float* magnitude,
         float* deviation) {
  const TrackedDoubles factor(Doubles(row.factor[0]), Doubles(row.factor[1]), Doubles(row.factor[2]));
  const TrackedDoubles e =
      exponential_of_score(Doubles::load(x), Doubles(scale), Doubles(row.maximum), Doubles(row.bound));
  const TrackedDoubles y = softmax_probability(e * factor);
  y.y.store(value);
  if (magnitude != nullptr) {
    store_upward(y.b, magnitude);
    store_upward(root_of(y.v), deviation);
  }
}

void outputs(const double* x, std::size_t columns, double scale, const SoftmaxStatistics& row, const NormRow& out) {
  std::size_t j = 0;
  for (; j + kPartLanes <= columns; j += kPartLanes) {
    put(x + j, scale, row, out.value + j, after(out.magnitude, j), after(out.deviation, j));
  }
  if (j < columns) {
    double rest[kPartLanes] = {}, value[kPartLanes];
    float magnitude[kPartLanes], deviation[kPartLanes];
    for (std::size_t l = 0; j + l < columns; ++l) {
      rest[l] = x[j + l];
    }
    put(rest, scale, row, value, magnitude, deviation);
    for (std::size_t l = 0; j + l < columns; ++l) {
      out.value[j + l] = value[l];
      if (out.magnitude != nullptr) {
        out.magnitude[j + l] = magnitude[l];
        out.deviation[j + l] = deviation[l];
      }
    }
  }
}

constexpr SoftmaxKernels kKernels = {kPartLanes, extent, sums, outputs};

}  // namespace

const SoftmaxKernels& softmax_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
