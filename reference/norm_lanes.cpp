#include "reference/norm_lanes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/isa.hpp"
#include "reference/norm_rows.hpp"

namespace numcheck::reference {
namespace {

// Products of three such numbers, and sums of 2^20 of their squares, stay far from the ends of FP32's range.
constexpr double kSmallest = 0x1p-30, kLargest = 0x1p30;
constexpr double kLargestSum = 0x1p51;

bool is_tame(double x) {
  const double magnitude = std::fabs(x);
  return magnitude == 0 || (magnitude >= kSmallest && magnitude <= kLargest);
}

/// Rows' numbers, interleaved. Kept for the next rows: a row is often longer than what malloc gives without asking for pages.
std::vector<double>& interleaved(std::size_t size) {
  thread_local std::vector<double> numbers;
  numbers.resize(size);
  return numbers;
}

}  // namespace

const NormKernels& norm_kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(norm_kernels)();
}

NormFactors::NormFactors(const op::Operand& gamma, const op::Operand* beta, const op::NormParams& p)
    : zero_centred_(p.zero_centered_gamma),
      add_(p.gamma_add),
      dtype_(gamma.dtype),
      gamma_(gamma.data, gamma.data + gamma.elements()),
      beta_(beta == nullptr ? std::vector<double>() : std::vector<double>(beta->data, beta->data + beta->elements())),
      tracked_(gamma_factors<Tracked>(gamma, p)) {
  for (const Tracked& factor : tracked_) {
    value_.push_back(factor.y);
    bound_.push_back(factor.b);
    variance_.push_back(factor.v);
    tame_ = tame_ && is_tame(factor.y) && factor.b <= 1;
  }
  tame_ = tame_ && std::ranges::all_of(beta_, &is_tame);
}

bool NormFactors::is_of(const op::Operand& gamma, const op::Operand* beta, const op::NormParams& p) const {
  const auto same = [](const std::vector<double>& known, const op::Operand* given) {
    return given == nullptr ? known.empty()
                            : known.size() == given->elements() &&
                                  std::memcmp(known.data(), given->data, known.size() * sizeof(double)) == 0;
  };
  return zero_centred_ == p.zero_centered_gamma && add_ == p.gamma_add && dtype_ == gamma.dtype &&
         same(gamma_, &gamma) && same(beta_, beta);
}

std::shared_ptr<const NormFactors> NormFactors::of(const op::Operand& gamma, const op::Operand* beta,
                                                   const op::NormParams& p) {
  constexpr std::size_t kMost = std::size_t{1} << 16;                   // columns: each thread keeps some megabytes
  thread_local std::array<std::shared_ptr<const NormFactors>, 2> last;  // stored numbers, and unrounded ones
  for (const auto& known : last) {
    if (known != nullptr && known->is_of(gamma, beta, p)) {
      return known;
    }
  }
  std::shared_ptr<const NormFactors> factors(new NormFactors(gamma, beta, p));
  if (gamma.elements() <= kMost) {
    last[1] = std::exchange(last[0], factors);
  }
  return factors;
}

NormColumns NormFactors::columns() const {
  return {value_.data(), bound_.data(), variance_.data(), beta_.empty() ? nullptr : beta_.data()};
}

NormLanes::NormLanes(const op::Operand& x, std::shared_ptr<const NormFactors> factors, double epsilon, bool values_only)
    : x_(x),
      epsilon_(epsilon),
      values_only_(values_only),
      kernels_(norm_kernels()),
      factors_(std::move(factors)),
      columns_(factors_->columns()) {}

std::optional<std::vector<NormLanes::Statistics>> NormLanes::statistics(std::size_t first) const {
  const auto hidden = static_cast<std::size_t>(x_.cols);
  if (!factors_->tame() || first + lanes() > static_cast<std::size_t>(x_.rows)) {
    return std::nullopt;
  }
  std::vector<double>& numbers = interleaved(hidden * lanes());
  kernels_.interleave(x_.data + first * hidden, hidden, numbers.data());
  TrackedLanes sum, squares, mean;
  RowExtent extent;
  if (columns_.beta != nullptr) {
    kernels_.sums(numbers.data(), hidden, values_only_, sum, extent);
    for (std::size_t l = 0; l < lanes(); ++l) {
      const Tracked of_row = divided_by_count(Tracked(sum.y[l], sum.b[l], sum.v[l]), hidden);
      mean.y[l] = of_row.y, mean.b[l] = of_row.b, mean.v[l] = of_row.v;
    }
  }
  kernels_.squares(numbers.data(), hidden, columns_.beta == nullptr ? nullptr : &mean, values_only_, squares, extent);
  std::vector<Statistics> rows(lanes());
  for (std::size_t l = 0; l < lanes(); ++l) {
    Statistics& row = rows[l];
    Tracked total(squares.y[l], squares.b[l], squares.v[l]);
    if (columns_.beta != nullptr) {
      row.mean = {mean.y[l], mean.b[l], mean.v[l]};
      total = with_shifted_mean(total, row.mean, hidden);
    }
    row.rsigma = row_rsigma(divided_by_count(total, hidden), epsilon_);
    row.absolute = extent.absolute[l] / static_cast<double>(hidden);
    const bool tame = extent.largest[l] <= kLargest && extent.absolute[l] <= kLargestSum && row.rsigma.b <= kLargest &&
                      row.rsigma.y >= kSmallest && row.rsigma.y <= kLargest;
    if (!tame) {
      return std::nullopt;
    }
  }
  return rows;
}

bool NormLanes::set(std::size_t row, const Statistics& statistics, TrackedOutput& y) const {
  const auto hidden = static_cast<std::size_t>(x_.cols);
  const std::size_t at = row * hidden;
  const Tracked &mean = statistics.mean, &rsigma = statistics.rsigma;
  return kernels_.outputs(x_.data + at, hidden,
                          {{mean.y, mean.b, mean.v}, {rsigma.y, rsigma.b, rsigma.v}, statistics.absolute}, columns_,
                          {y.value_at(at), y.magnitude_at(at), y.deviation_at(at), y.terms_at(at)});
}

}  // namespace numcheck::reference
