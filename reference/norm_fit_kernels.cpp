// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "reference/norm_fit_kernels.hpp"

#include "reference/lanes.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

/// The sums of the columns that are in the same lane.
template <bool kCentred, bool kNarrow>
class Sums {
 public:
  explicit Sums(const RowToFit& row, const StoredAs& stored) : row_(row), stored_(stored) {}

  /// Columns [j, j + kPartLanes) of the row; `weight` is 0 for those that do not exist.
  void add(std::size_t j, const Doubles& weight) {
    const Doubles y = Doubles::load(row_.y + j), deviation = widened(load_narrow(row_.deviation + j));
    Doubles apart(kInfinity);  // from the nearest boundary between numbers, in steps
    const Doubles best = kNarrow ? as_stored(y, apart) : y;
    const Doubles error = Doubles::load(row_.got + j) - best;
    unknown_ = unknown_ | not_finite(error) | not_finite(y);
    Doubles variance = deviation * deviation;
    LaneMask told = {~PartMask{}};
    if constexpr (kNarrow) {
      const Doubles step = unscaled(step_of(scaled_up(magnitude(y) + 3.0 * deviation)));
      variance += step * step * (1.0 / 12);
      // Next to a boundary, the least of errors decides, and in the same way for all that are there: 1 + gamma may lie on one.
      told = (deviation > step * kManyErrors) | (apart * step > kNearErrors * deviation);
    }
    const Doubles w = chosen((variance > Doubles(0.0)) & told, weight / variance, Doubles(0.0));
    const Doubles a = kCentred ? y - Doubles::load(row_.beta + j) : y;
    aa_ += w * a * a;
    ae_ += w * a * error;
    if constexpr (kCentred) {
      const Doubles b = Doubles::load(row_.gamma + j) + row_.centre;
      ab_ += w * a * b;
      bb_ += w * b * b;
      be_ += w * b * error;
    }
    sum_ += weight * y;
    squares_ += weight * y * y;
    const Doubles distance = Doubles::load(row_.x + j) - row_.mean;
    spread_ += weight * distance * distance;
    mix(kCentred ? best : magnitude(best));  // x and -x have the same errors, but for their sign
  }

  /// Adds these lanes to what the ones before have.
  void add_to(RowSumsToFit& all) const {
    for (std::size_t l = 0; l < kPartLanes; ++l) {
      all.aa += aa_.x[l];
      all.ab += ab_.x[l];
      all.bb += bb_.x[l];
      all.ae += ae_.x[l];
      all.be += be_.x[l];
      all.sum += sum_.x[l];
      all.squares += squares_.x[l];
      all.spread += spread_.x[l];
      all.alike = (all.alike ^ alike_[l]) * kMix;
      all.alike ^= all.alike >> 31;
    }
    all.finite = all.finite && !unknown_.any();
    all.within = all.within && !beyond_.any();
  }

 private:
  static constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15;
  static constexpr double kManyErrors = 0.125, kNearErrors = 4;  // in steps, in deviations

  static LaneMask not_finite(const Doubles& a) { return {~is_finite(a).set}; }
  static NarrowLanes load_narrow(const float* p) { return {PartFloats(*reinterpret_cast<const LoosePartFloats*>(p))}; }

  /// The distance of the format's numbers near a.
  [[nodiscard]] Doubles step_of(const Doubles& a) const {
    const Doubles size = smaller(magnitude(a), Doubles(stored_.max_finite));
    const Doubles power(Part(PartBits(size.x) & (PartBits{} + 0x7ff0'0000'0000'0000ULL)));
    return larger(power, Doubles(stored_.min_normal)) * stored_.fraction_unit;
  }
  /// The nearest number of the format, as a value: adding 1.5 2^52 leaves no bits below 1.
  [[nodiscard]] Doubles as_stored(const Doubles& y, Doubles& apart) {
    const Doubles scaled = scaled_up(y), step = step_of(scaled);
    beyond_ = beyond_ | LaneMask{~(Doubles(stored_.max_finite) >= magnitude(scaled)).set};
    const Doubles inverse(Part(0x7fe0'0000'0000'0000ULL - PartBits(step.x)));  // of a power of two
    const Doubles steps = scaled * inverse, nearest = (steps + 0x1.8p52) - 0x1.8p52;
    apart = 0.5 - magnitude(steps - nearest);
    return unscaled(nearest * step);
  }
  [[nodiscard]] Doubles scaled_up(const Doubles& a) const { return stored_.scale == 1 ? a : a * stored_.scale; }
  [[nodiscard]] Doubles unscaled(const Doubles& a) const { return stored_.scale == 1 ? a : a / stored_.scale; }
  void mix(const Doubles& best) {
    typedef std::uint32_t Ints __attribute__((vector_size(kPartLanes * sizeof(float))));
    const PartBits bits = __builtin_convertvector(Ints(narrowed(best).x), PartBits);
    const PartBits mixed = (alike_ ^ bits) * kMix;
    alike_ = (mixed << 29) | (mixed >> 35);
  }

  const RowToFit& row_;
  const StoredAs& stored_;
  Doubles aa_, ab_, bb_, ae_, be_, sum_, squares_, spread_;
  PartBits alike_{};
  LaneMask unknown_, beyond_;
};

/// The last columns of a row, filled up.
struct Rest {
  double x[kPartLanes] = {}, gamma[kPartLanes] = {}, beta[kPartLanes] = {}, y[kPartLanes] = {}, got[kPartLanes] = {};
  double weight[kPartLanes] = {};
  float deviation[kPartLanes] = {};

  Rest(const RowToFit& row, std::size_t from) {
    for (std::size_t l = 0; from + l < row.hidden; ++l) {
      x[l] = row.x[from + l];
      gamma[l] = row.gamma == nullptr ? 0 : row.gamma[from + l];
      beta[l] = row.beta == nullptr ? 0 : row.beta[from + l];
      y[l] = row.y[from + l];
      got[l] = row.got[from + l];
      deviation[l] = row.deviation[from + l];
      weight[l] = 1;
    }
  }
};

/// Sums have kLanes lanes on every instruction set, and each part of them goes over the row by itself.
template <bool kCentred, bool kNarrow>
RowSumsToFit sums_of(const RowToFit& row, const StoredAs& stored) {
  RowSumsToFit all{.finite = true, .within = true};
  const std::size_t whole = row.hidden / kPartLanes * kPartLanes;
  for (std::size_t part = 0; part < kLanes; part += kPartLanes) {
    RowToFit at = row;
    Sums<kCentred, kNarrow> sums(at, stored);
    for (std::size_t j = part; j < whole; j += kLanes) {
      sums.add(j, Doubles(1.0));
    }
    if (whole < row.hidden && whole % kLanes == part) {  // the rest in place of a row of its own
      const Rest rest(row, whole);
      at.x = rest.x, at.gamma = rest.gamma, at.beta = rest.beta, at.y = rest.y, at.got = rest.got;
      at.deviation = rest.deviation;
      sums.add(0, Doubles::load(rest.weight));
    }
    sums.add_to(all);
  }
  all.spread /= static_cast<double>(row.hidden);
  return all;
}

RowSumsToFit sums(const RowToFit& row, const StoredAs& stored) {
  if (row.beta == nullptr) {
    return stored.narrow ? sums_of<false, true>(row, stored) : sums_of<false, false>(row, stored);
  }
  return stored.narrow ? sums_of<true, true>(row, stored) : sums_of<true, false>(row, stored);
}

constexpr NormFitKernels kKernels = {sums};

}  // namespace

const NormFitKernels& norm_fit_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
