// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "reference/norm_kernels.hpp"

#include <type_traits>

#include "reference/lanes.hpp"
#include "reference/norm_formula.hpp"
#include "reference/row_sum.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

using TrackedDoubles = tolerance::TrackedOf<Doubles>;

/// Below it in magnitude, a factor may make a product underflow that others do not.
constexpr double kSmallFactor = 0x1p-60;

/// Sums of numbers with errors, or of values alone.
template <class Number>
struct Sums {
  using OfRow = RowSum<Number>;
  using OfSquares = tolerance::Sum<Number>;
};
template <>
struct Sums<Doubles> {
  using OfRow = tolerance::CompensatedSum<Doubles>;
  using OfSquares = tolerance::CompensatedSum<Doubles>;
};

template <class Number>
Number load(const TrackedLanes& lanes) {
  if constexpr (std::is_same_v<Number, Doubles>) {
    return Doubles::load(lanes.y);
  } else {
    return {Doubles::load(lanes.y), Doubles::load(lanes.b), Doubles::load(lanes.v)};
  }
}

void store(const TrackedDoubles& x, TrackedLanes& out) {
  x.y.store(out.y);
  x.b.store(out.b);
  x.v.store(out.v);
}
void store(const Doubles& x, TrackedLanes& out) {
  store(TrackedDoubles(x), out);
}

template <class Number>
Number splat(const double (&number)[3]) {
  if constexpr (std::is_same_v<Number, Doubles>) {
    return Doubles(number[0]);
  } else {
    return {Doubles(number[0]), Doubles(number[1]), Doubles(number[2])};
  }
}

void interleave(const double* x, std::size_t hidden, double* out) {
  for (std::size_t j = 0; j < hidden; ++j) {
    for (std::size_t l = 0; l < kPartLanes; ++l) {
      out[j * kPartLanes + l] = x[l * hidden + j];
    }
  }
}

template <class Number>
void sums_of(const double* interleaved, std::size_t hidden, TrackedLanes& out, RowExtent& extent) {
  typename Sums<Number>::OfRow sum;
  Doubles largest, absolute;
  for (std::size_t j = 0; j < hidden; ++j) {
    const Doubles x = Doubles::load(interleaved + j * kPartLanes);
    sum.add(Number(x));
    largest = larger(magnitude(x), largest);
    absolute += magnitude(x);
  }
  store(sum.result(), out);
  largest.store(extent.largest);
  absolute.store(extent.absolute);
}

void sums(const double* interleaved, std::size_t hidden, bool values_only, TrackedLanes& out, RowExtent& extent) {
  values_only ? sums_of<Doubles>(interleaved, hidden, out, extent)
              : sums_of<TrackedDoubles>(interleaved, hidden, out, extent);
}

template <class Number>
void squares_of(const double* interleaved, std::size_t hidden, const TrackedLanes* mean, TrackedLanes& out,
                RowExtent& extent) {
  typename Sums<Number>::OfSquares sum;
  Doubles largest, absolute;
  const Number centre = mean == nullptr ? Number(Doubles(0.0)) : load<Number>(*mean);
  for (std::size_t j = 0; j < hidden; ++j) {
    const Doubles x = Doubles::load(interleaved + j * kPartLanes);
    sum.add(mean == nullptr ? square_of(Number(x)) : centred_square(Number(x), centre));
    largest = larger(magnitude(x), largest);
    absolute += magnitude(x);
  }
  store(sum.result(), out);
  largest.store(extent.largest);
  absolute.store(extent.absolute);
}

void squares(const double* interleaved, std::size_t hidden, const TrackedLanes* mean, bool values_only,
             TrackedLanes& out, RowExtent& extent) {
  values_only ? squares_of<Doubles>(interleaved, hidden, mean, out, extent)
              : squares_of<TrackedDoubles>(interleaved, hidden, mean, out, extent);
}

/// What the columns of one row have in common.
template <bool kCentred, class Number>
struct Row {
  Number mean, rsigma;
  Doubles absolute;
  LaneMask small;

  explicit Row(const NormStatistics& row)
      : mean(splat<Number>(row.mean)), rsigma(splat<Number>(row.rsigma)), absolute(Doubles(row.absolute)) {}

  void put(const double* x, const NormColumns& columns, std::size_t from, const NormRow& out, std::size_t to) {
    const Doubles at = Doubles::load(x);
    const Number factor = factor_at(columns, from);
    Number y;
    if constexpr (kCentred) {
      const Doubles beta = Doubles::load(columns.beta + from), centred = magnitude(at - value_of(mean));
      small = small | ((centred > Doubles(0.0)) & (centred < Doubles(kSmallFactor)));
      y = layernorm_output(Number(at), mean, rsigma, factor, Number(beta));
      if (out.terms != nullptr) {
        const Doubles scale = magnitude(value_of(factor) * value_of(rsigma));
        store_upward(scale * (magnitude(at) + absolute) + magnitude(beta), out.terms + to);
      }
    } else {
      small = small | ((magnitude(at) > Doubles(0.0)) & (magnitude(at) < Doubles(kSmallFactor)));
      y = rmsnorm_output(Number(at), rsigma, factor);
    }
    value_of(y).store(out.value + to);
    if constexpr (!std::is_same_v<Number, Doubles>) {
      store_upward(y.b, out.magnitude + to);
      store_upward(root_of(y.v), out.deviation + to);
    }
  }

 private:
  static const Doubles& value_of(const Doubles& x) { return x; }
  static const Doubles& value_of(const TrackedDoubles& x) { return x.y; }
  static Number factor_at(const NormColumns& columns, std::size_t from) {
    if constexpr (std::is_same_v<Number, Doubles>) {
      return Doubles::load(columns.factor + from);
    } else {
      return {Doubles::load(columns.factor + from), Doubles::load(columns.factor_bound + from),
              Doubles::load(columns.factor_variance + from)};
    }
  }
};

template <bool kCentred, class Number>
bool outputs_of(const double* x, std::size_t hidden, const NormStatistics& statistics, const NormColumns& columns,
                const NormRow& out) {
  Row<kCentred, Number> row(statistics);
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
    Row<kCentred, Number> last(statistics);
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
  const bool values_only = out.magnitude == nullptr;
  if (columns.beta == nullptr) {
    return values_only ? outputs_of<false, Doubles>(x, hidden, row, columns, out)
                       : outputs_of<false, TrackedDoubles>(x, hidden, row, columns, out);
  }
  return values_only ? outputs_of<true, Doubles>(x, hidden, row, columns, out)
                     : outputs_of<true, TrackedDoubles>(x, hidden, row, columns, out);
}

constexpr NormKernels kKernels = {kPartLanes, interleave, sums, squares, outputs};

}  // namespace

const NormKernels& norm_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
