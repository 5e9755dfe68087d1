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
  store_upward(y.b, magnitude);
  store_upward(root_of(y.v), deviation);
}

void outputs(const double* x, std::size_t columns, double scale, const SoftmaxStatistics& row, const NormRow& out) {
  std::size_t j = 0;
  for (; j + kPartLanes <= columns; j += kPartLanes) {
    put(x + j, scale, row, out.value + j, out.magnitude + j, out.deviation + j);
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
      out.magnitude[j + l] = magnitude[l];
      out.deviation[j + l] = deviation[l];
    }
  }
}

void values(const double* x, std::size_t columns, double scale, double maximum, double* value) {
  const std::size_t whole = columns / kSumChains * kSumChains;
  double rest[kSumChains], power[kSumChains] = {};
  for (std::size_t l = 0; l < kSumChains; ++l) {
    rest[l] = whole + l < columns ? x[whole + l] : 0;
  }
  double chains[kSumChains] = {};
  for (std::size_t part = 0; part < kSumChains; part += kPartLanes) {
    tolerance::CompensatedSum<Doubles> sum;
    for (std::size_t j = part; j < whole; j += kSumChains) {
      const Doubles e = exponential_of(Doubles::load(x + j) * scale - maximum);
      e.store(value + j);
      sum.add(e);
    }
    sum.result().store(chains + part);
    exponential_of(Doubles::load(rest + part) * scale - maximum).store(power + part);
  }
  tolerance::CompensatedSum<double> sum;
  for (std::size_t l = 0; l < kSumChains; ++l) {
    sum.add(chains[l]);
    if (whole + l < columns) {
      sum.add(power[l]);
      value[whole + l] = power[l];
    }
  }
  const double factor = 1 / sum.result();
  for (std::size_t j = 0; j < columns; ++j) {
    value[j] *= factor;
  }
}

/// The lanes of one part of every group of kSumChains.
class RowPart {
 public:
  RowPart(const UlpsOf& ulps, double flush) : ulps_(ulps), flush_(flush) {}

  void add(const Doubles& got, const Doubles& expected) {
    const Doubles magnitude_of_got = magnitude(got), zero(0.0), one(1.0);
    const Doubles reached = chosen(magnitude_of_got > expected, magnitude_of_got, expected);
    const Doubles ulp = ulp_of(magnitude(reached));
    const Doubles wanted = chosen(expected == zero, zero, one);
    most_ += chosen(got == zero, wanted, one) * (ulp * 0.5 + flush_);
    squares_ += wanted * (ulp * ulp);
    got_.add(got);
    expected_.add(expected);
  }

  void store(std::size_t at, SoftmaxRowChains& row) const {
    most_.store(row.most + at);
    squares_.store(row.squares + at);
    got_.store(at, row.got);
    expected_.store(at, row.expected);
  }

 private:
  struct Sum {
    Doubles sum, lost;

    void add(const Doubles& term) {
      const Doubles next = sum + term, taken = next - sum;
      lost += (sum - (next - taken)) + (term - taken);
      sum = next;
    }
    void store(std::size_t at, SumChains& chains) const {
      sum.store(chains.sum + at);
      lost.store(chains.lost + at);
    }
  };

  [[nodiscard]] Doubles ulp_of(const Doubles& magnitude) const {
    const Doubles largest(ulps_.largest), smallest(ulps_.smallest);
    const Doubles finite = chosen(magnitude < largest, magnitude, largest);
    const Doubles normal = chosen(finite > smallest, finite, smallest);
    return Doubles(Part(PartMask(normal.x) & (PartMask{} + 0x7ff0'0000'0000'0000LL))) * ulps_.unit;
  }

  const UlpsOf& ulps_;
  Doubles flush_, most_, squares_;
  Sum got_, expected_;
};

bool are_below(const float* bound, std::size_t columns, double limit) {
  LaneMask reached;
  std::size_t j = 0;
  for (; j + kPartLanes <= columns; j += kPartLanes) {
    const Doubles b = widened({PartFloats(*reinterpret_cast<const LoosePartFloats*>(bound + j))});
    reached = reached | LaneMask{~(b < Doubles(limit)).set};
  }
  bool below = !reached.any();
  for (; j < columns; ++j) {
    below = below && static_cast<double>(bound[j]) < limit;
  }
  return below;
}

void row_sums(const double* got, const double* expected, const float* bound, std::size_t columns, const UlpsOf& ulps,
              double flush, double undetermined, SoftmaxRowChains& row) {
  const std::size_t whole = columns / kSumChains * kSumChains;
  for (std::size_t part = 0; part < kSumChains; part += kPartLanes) {
    RowPart sums(ulps, flush);
    for (std::size_t j = part; j < whole; j += kSumChains) {
      sums.add(Doubles::load(got + j), Doubles::load(expected + j));
    }
    for (std::size_t j = whole; part == 0 && j < columns; ++j) {
      double one[2][kPartLanes] = {};
      one[0][0] = got[j];
      one[1][0] = expected[j];
      sums.add(Doubles::load(one[0]), Doubles::load(one[1]));
    }
    sums.store(part, row);
  }
  row.determined = bound == nullptr || are_below(bound, columns, undetermined);
}

constexpr SoftmaxKernels kKernels = {kPartLanes, extent, sums, outputs, values, row_sums};

}  // namespace

const SoftmaxKernels& softmax_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
