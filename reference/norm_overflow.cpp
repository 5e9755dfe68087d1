#include "reference/norm_overflow.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "reference/norm_rows.hpp"

namespace numcheck::reference {
namespace {

/// An output: what is expected of it, and what the device has left.
struct Output {
  std::size_t index;
  const op::OutputValues& expected;
  const op::Delivered& delivered;
  std::span<const double> got;
};

std::vector<Output> outputs_of(const op::FindingRequest& request) {
  std::vector<Output> all;
  for (std::size_t i = 0; i < request.expected->outputs.size(); ++i) {
    const op::OutputValues& expected = request.expected->outputs[i];
    const auto found = std::ranges::find(request.outputs, expected.port, &op::Delivered::port);
    if (found != request.outputs.end()) {
      all.push_back({i, expected, *found, found->value});
    }
  }
  return all;
}

const Output* find_output(const std::vector<Output>& outputs, std::string_view port) {
  const auto found =
      std::ranges::find_if(outputs, [port](const Output& output) { return output.expected.port == port; });
  return found == outputs.end() ? nullptr : &*found;
}

bool is_open(const op::OutputValues& output, std::size_t element) {
  const auto at = static_cast<std::int64_t>(element);
  const auto next = std::ranges::upper_bound(output.open, at, {}, &op::OutputValues::Range::begin);
  return next != output.open.begin() && at < std::prev(next)->end;
}

/// The outputs of a forward pass; RMSNorm has no mu.
struct Outputs {
  const Output* mu;
  const Output& rsigma;
  const Output& y;

  [[nodiscard]] double mean(std::size_t row) const { return mu == nullptr ? 0 : mu->got[row]; }
  [[nodiscard]] bool sum_overflowed(std::size_t row) const {
    return mu != nullptr && !std::isfinite(mu->got[row]) && is_open(mu->expected, row);
  }
  /// E x^2 - mu^2 was infinity less infinity.
  [[nodiscard]] bool variance_is_nan(std::size_t row) const {
    constexpr double kRoot = 0x1p62;  // its square is FP32's largest number but for a reserve
    return mu != nullptr && std::isnan(rsigma.got[row]) && std::fabs(mean(row)) >= kRoot;
  }
};

/// What rows are normalised with.
struct NormInputs {
  const op::Operand& x;
  const op::Operand* beta;  ///< null: RMSNorm, which has none
  std::vector<double> factors;
  double epsilon;
  bool rounds_product;  ///< x rsigma is rounded to x's format before it is multiplied by gamma'
};

/// Whether anything is expected of an element.
bool is_known(const op::OutputValues& output, std::size_t element) {
  return output.magnitude.empty() || (output.magnitude[element] < static_cast<float>(TrackedOutput::kMaxBound) &&
                                      std::isfinite(output.deviation[element]));
}

/// Whether a number within y's bound is stored as this one.
bool is_stored_as(const Tracked& y, double got, const op::Delivered& output) {
  const auto stored = [&output](double value) {
    const bool saturates = core::dtype_info(output.dtype).storage_bytes == 1;
    return core::round_to(value * output.scale, output.dtype,
                          saturates ? core::Overflow::saturate : core::Overflow::ieee);
  };
  const double number = stored(got);  // that of the output, but for a division by its scale
  return std::isnan(y.y) ? std::isnan(got) : stored(y.y - y.b) <= number && number <= stored(y.y + y.b);
}

/// A row whose FP32 sums may overflow.
class Row {
 public:
  Row(const Outputs& outputs, const NormInputs& inputs, std::size_t i)
      : outputs_(outputs), inputs_(inputs), i_(i), x_(row_of(inputs.x, i)) {
    compute_without_overflow();
  }

  [[nodiscard]] std::vector<op::Settled> settle() {
    if (outputs_.mu != nullptr && is_open(outputs_.mu->expected, i_)) {
      if (std::isfinite(outputs_.mu->got[i_])) {
        add_unless_known(*outputs_.mu, i_, mean_);
      } else {
        leave(*outputs_.mu, i_);
      }
    }
    const double rsigma = outputs_.rsigma.got[i_];
    if (is_lost() && std::isnan(rsigma)) {
      leave(outputs_.rsigma, i_);
    } else if (rsigma == 0) {
      add(outputs_.rsigma, i_, Tracked(0.0));
    } else {
      add_unless_known(outputs_.rsigma, i_, rsigma_);
    }
    for (std::size_t j = 0; j < x_.size(); ++j) {
      settle_element(j);
    }
    return std::move(settled_);
  }

 private:
  [[nodiscard]] bool is_lost() const { return outputs_.sum_overflowed(i_) || outputs_.variance_is_nan(i_); }

  /// Of a kernel that has summed without an overflow, because it divides first, scales, or merges means: the statistics are those
  /// of the row times 2^-80, whose squares are far from FP32's limits, too.
  void compute_without_overflow() {
    constexpr double kScale = 0x1p-80;
    const auto times = [](const Tracked& x, double power) {
      return Tracked(x.y * power, x.b * power, x.v * power * power);
    };
    std::vector<double> scaled(x_.begin(), x_.end());
    std::ranges::for_each(scaled, [](double& x) { x *= kScale; });
    const bool centred = outputs_.mu != nullptr;
    const Tracked mean = centred ? row_mean<Tracked>(scaled) : Tracked(0.0);
    const Tracked spread = centred ? row_variance<Tracked>(scaled, mean) : row_mean_square<Tracked>(scaled);
    mean_ = times(mean, 1 / kScale);
    rsigma_ = times(row_rsigma(spread, inputs_.epsilon * kScale * kScale), kScale);
  }

  [[nodiscard]] Tracked without_overflow(std::size_t j) const {
    const Tracked normalised = normalised_element(Tracked(x_[j]), mean_, rsigma_);
    const Tracked product = inputs_.rounds_product ? rounded_to(normalised, inputs_.x.dtype) : normalised;
    return multiplied_and_added(product, Tracked(inputs_.factors[j]), Tracked(beta(j)));
  }

  /// Where rsigma is 0, or the row is lost, y is NaN, 0 gamma' + beta, or what it is without an overflow: threads that merge a row's
  /// sums in different orders disagree on what overflows. It is judged by what it is stored as, or nearer to.
  void settle_element(std::size_t j) {
    constexpr double kLargest = 0x1p127;
    const std::size_t at = i_ * x_.size() + j;
    const Tracked full = without_overflow(j);
    if (!is_lost() && outputs_.rsigma.got[i_] != 0) {
      add_unless_known(outputs_.y, at, full);
      return;
    }
    const double got = outputs_.y.got[at];
    // x - mu may overflow, too, which makes NaN, unless it is written as x rsigma - mu rsigma.
    const bool may_be_nan = is_lost() || !(std::fabs(x_[j] - outputs_.mean(i_)) < kLargest);
    if (may_be_nan && !std::isfinite(got)) {
      leave(outputs_.y, at);
      return;
    }
    const Tracked zero = Tracked(0 * inputs_.factors[j]) + Tracked(beta(j));
    const bool is_full = std::isfinite(full.b) && !is_stored_as(zero, got, outputs_.y.delivered) &&
                         std::fabs(got - full.y) < std::fabs(got - zero.y);  // not of NaN
    add(outputs_.y, at, is_full ? full : zero);
  }

  [[nodiscard]] double beta(std::size_t j) const { return inputs_.beta == nullptr ? 0 : inputs_.beta->data[j]; }

  void add(const Output& output, std::size_t at, const Tracked& y) {
    settled_.push_back({output.index, at, true, y.y, y.b, std::sqrt(y.v)});
  }
  void add_unless_known(const Output& output, std::size_t at, const Tracked& y) {
    if (!is_known(output.expected, at) && std::isfinite(y.b)) {
      add(output, at, y);
    }
  }
  void leave(const Output& output, std::size_t at) { settled_.push_back({output.index, at, false}); }

  const Outputs& outputs_;
  const NormInputs& inputs_;
  std::size_t i_;
  std::span<const double> x_;
  Tracked mean_ = 0.0, rsigma_ = 0.0;  ///< without an overflow
  std::vector<op::Settled> settled_;
};

}  // namespace

std::vector<op::Settled> settle_rows(const op::FindingRequest& request, const op::NormParams& p, bool rounds_product) {
  const std::vector<Output> all = outputs_of(request);
  const Output *mu = find_output(all, "mu"), *rsigma = find_output(all, "rsigma"), *y = find_output(all, "y");
  if (all.size() != request.expected->outputs.size() || rsigma == nullptr || y == nullptr) {
    return {};  // some were not given: what is there does not show it
  }
  const Outputs outputs{mu, *rsigma, *y};
  const NormInputs inputs{.x = op::operand_named(request.inputs, "x"),
                          .beta = op::find_operand(request.inputs, "beta"),
                          .factors = gamma_factors<double>(op::operand_named(request.inputs, "gamma"), p),
                          .epsilon = epsilon_of(p),
                          .rounds_product = rounds_product};
  const std::vector<op::OutputValues::Range>& open = outputs.rsigma.expected.open;
  std::vector<std::vector<op::Settled>> rows(open.size());
  core::parallel_for(open.size(), [&](std::size_t n) {
    rows[n] = Row(outputs, inputs, static_cast<std::size_t>(open[n].begin)).settle();
  });
  std::vector<op::Settled> settled;
  for (const std::vector<op::Settled>& row : rows) {
    settled.insert(settled.end(), row.begin(), row.end());
  }
  return settled;
}

}  // namespace numcheck::reference
