// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "reference/norm_kernels.hpp"

#include "reference/lanes.hpp"
#include "reference/norm_formula.hpp"
#include "reference/row_sum.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

using TrackedDoubles = tolerance::TrackedOf<Doubles>;

/// Below it in magnitude, a factor may make a product underflow that others do not.
constexpr double kSmallFactor = 0x1p-60;

TrackedDoubles load(const TrackedLanes& lanes) {
  return {Doubles::load(lanes.y), Doubles::load(lanes.b), Doubles::load(lanes.v)};
}

void store(const TrackedDoubles& x, TrackedLanes& out) {
  x.y.store(out.y);
  x.b.store(out.b);
  x.v.store(out.v);
}

TrackedDoubles splat(const double (&number)[3]) {
  return {Doubles(number[0]), Doubles(number[1]), Doubles(number[2])};
}

void interleave(const double* x, std::size_t hidden, double* out) {
  for (std::size_t j = 0; j < hidden; ++j) {
    for (std::size_t l = 0; l < kPartLanes; ++l) {
      out[j * kPartLanes + l] = x[l * hidden + j];
    }
  }
}

void sums(const double* interleaved, std::size_t hidden, TrackedLanes& out, RowExtent& extent) {
  RowSum<TrackedDoubles> sum;
  Doubles largest, absolute;
  for (std::size_t j = 0; j < hidden; ++j) {
    const Doubles x = Doubles::load(interleaved + j * kPartLanes);
    sum.add(TrackedDoubles(x));
    largest = larger(magnitude(x), largest);
    absolute += magnitude(x);
  }
  store(sum.result(), out);
  largest.store(extent.largest);
  absolute.store(extent.absolute);
}

void squares(const double* interleaved, std::size_t hidden, const TrackedLanes* mean, TrackedLanes& out,
             RowExtent& extent) {
  tolerance::Sum<TrackedDoubles> sum;
  Doubles largest, absolute;
  const TrackedDoubles centre = mean == nullptr ? TrackedDoubles() : load(*mean);
  for (std::size_t j = 0; j < hidden; ++j) {
    const Doubles x = Doubles::load(interleaved + j * kPartLanes);
    sum.add(mean == nullptr ? square_of(TrackedDoubles(x)) : centred_square(TrackedDoubles(x), centre));
    largest = larger(magnitude(x), largest);
    absolute += magnitude(x);
  }
  store(sum.result(), out);
  largest.store(extent.largest);
  absolute.store(extent.absolute);
}

/// What the columns of one row have in common.
template <bool kCentred>
struct Row {
  TrackedDoubles mean, rsigma;
  Doubles absolute;
  LaneMask small;

  explicit Row(const NormStatistics& row)
      : mean(splat(row.mean)), rsigma(splat(row.rsigma)), absolute(Doubles(row.absolute)) {}

  void put(const double* x, const NormColumns& columns, std::size_t from, const NormRow& out, std::size_t to) {
    const Doubles at = Doubles::load(x);
    const TrackedDoubles factor(Doubles::load(columns.factor + from), Doubles::load(columns.factor_bound + from),
                                Doubles::load(columns.factor_variance + from));
    TrackedDoubles y;
    if constexpr (kCentred) {
      const Doubles beta = Doubles::load(columns.beta + from), centred = magnitude(at - mean.y);
      small = small | ((centred > Doubles(0.0)) & (centred < Doubles(kSmallFactor)));
      y = layernorm_output(TrackedDoubles(at), mean, rsigma, factor, TrackedDoubles(beta));
      const Doubles terms = magnitude(factor.y * rsigma.y) * (magnitude(at) + absolute) + magnitude(beta);
      if (out.terms != nullptr) {
        store_upward(terms, out.terms + to);
      }
    } else {
      small = small | ((magnitude(at) > Doubles(0.0)) & (magnitude(at) < Doubles(kSmallFactor)));
      y = rmsnorm_output(TrackedDoubles(at), rsigma, factor);
    }
    y.y.store(out.value + to);
    if (out.magnitude != nullptr) {
      store_upward(y.b, out.magnitude + to);
      store_upward(root_of(y.v), out.deviation + to);
    }
  }
};

template <bool kCentred>
bool outputs_of(const double* x, std::size_t hidden, const NormStatistics& statistics, const NormColumns& columns,
                const NormRow& out) {
  Row<kCentred> row(statistics);
  std::size_t j = 0;
  for (; j + kPartLanes <= hidden; j += kPartLanes) {
    row.put(x + j, columns, j, out, j);
  }
  if (j < hidden) {  // the rest, filled up with a number of the row
    double rest[4][kPartLanes] = {};
    double beta[kPartLanes] = {}, value[kPartLanes];
    float magnitudes[kPartLanes], deviation[kPartLanes], terms[kPartLanes];
    for (std::size_t l = 0; j + l < hidden; ++l) {
      rest[0][l] = x[j + l];
      rest[1][l] = columns.factor[j + l];
      rest[2][l] = columns.factor_bound[j + l];
      rest[3][l] = columns.factor_variance[j + l];
      beta[l] = columns.beta == nullptr ? 0 : columns.beta[j + l];
    }
    Row<kCentred> last(statistics);
    for (std::size_t l = hidden - j; l < kPartLanes; ++l) {
      rest[0][l] = rest[0][0];
    }
    last.put(rest[0], {rest[1], rest[2], rest[3], beta}, 0, {value, magnitudes, deviation, terms}, 0);
    row.small = row.small | last.small;
    for (std::size_t l = 0; j + l < hidden; ++l) {
      out.value[j + l] = value[l];
      if (out.magnitude != nullptr) {
        out.magnitude[j + l] = magnitudes[l];
        out.deviation[j + l] = deviation[l];
      }
      if (kCentred && out.terms != nullptr) {
        out.terms[j + l] = terms[l];
      }
    }
  }
  return !row.small.any();
}

bool outputs(const double* x, std::size_t hidden, const NormStatistics& row, const NormColumns& columns,
             const NormRow& out) {
  return columns.beta == nullptr ? outputs_of<false>(x, hidden, row, columns, out)
                                 : outputs_of<true>(x, hidden, row, columns, out);
}

constexpr NormKernels kKernels = {kPartLanes, interleave, sums, squares, outputs};

}  // namespace

const NormKernels& norm_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
