#include "reference/scaling_loss.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/rng.hpp"
#include "data/delayed_scaling.hpp"
#include "data/distribution.hpp"
#include "data/inputs.hpp"
#include "op/fp8_recipe.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kNumbers = 4096;

/// Normal numbers whose largest magnitude is 1; the same in every run.
const std::vector<double>& data_of_one() {
  static const std::vector<double> numbers = [] {
    std::vector<double> drawn(kNumbers);
    data::generate(data::make_distribution("normal"), {.seed = 1, .op = core::stream_word("fp8_recipe")}, 0, drawn,
                   {.cols = kNumbers});
    const double largest = data::absolute_max(drawn);
    std::ranges::transform(drawn, drawn.begin(), [largest](double x) { return x / largest; });
    return drawn;
  }();
  return numbers;
}

/// A step of a tensor that has data, and what their largest magnitude is scaled to.
struct Scaled {
  std::size_t at = 0;  ///< flat index
  double amax = 0, scale = 0;
  [[nodiscard]] double largest() const { return amax * scale; }
};

op::Finding finding_of(const char* name, const Scaled& found, const op::Fp8RecipeParams& p) {
  const data::DelayedScaling rules = data::delayed_scaling_of(p);
  const auto scales = static_cast<std::size_t>(p.scales());
  const ScalingLoss loss = scaling_loss(found.largest(), rules.format);
  constexpr double kPercent = 100;
  op::Finding finding;
  finding.name = name;
  finding.port = "scales";
  finding.measured = found.largest() / core::dtype_info(rules.format).max_finite;
  finding.text = fmt::format(
      "step {}, tensor {}: scale {:.6g} is used where an amax of {:.6g} implies {:.6g}; of normal data {:.3g} % are "
      "clipped "
      "and {:.3g} % become 0, SQNR {:.3g} dB",
      found.at / scales, found.at % scales, found.scale, found.amax,
      static_cast<double>(rules.scale_for(static_cast<float>(found.amax), 1)), kPercent * loss.clipped,
      kPercent * loss.underflow, loss.sqnr_db);
  return finding;
}

/// Where the SQNR falls below `least` on the way from `good` to `bad`.
double border_of(double good, double bad, double least, core::Dtype format) {
  constexpr int kHalvings = 40;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::sqrt(good * bad);
    (scaling_loss(middle, format).sqnr_db < least ? bad : good) = middle;
  }
  return good;
}

ScalingRange range_of(core::Dtype format) {
  constexpr double kLoss = 3, kFar = 0x1p30;
  const double full = core::dtype_info(format).max_finite;
  const double least = scaling_loss(full, format).sqnr_db - kLoss;
  return {border_of(full, full / kFar, least, format), border_of(full, full * kFar, least, format)};
}

/// How far outside of the range, as a logarithm; inside, negative.
double badness(const Scaled& step, const ScalingRange& range) {
  return step.largest() == 0
             ? std::numeric_limits<double>::infinity()
             : std::max(std::log(step.largest() / range.largest), std::log(range.smallest / step.largest()));
}

/// Numbers of the steps that the series has.
std::vector<std::size_t> rows_of(std::size_t steps) {
  std::vector<std::size_t> rows(std::min(steps, kMostSeriesRows));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = rows.size() == steps ? i : i * (steps - 1) / (rows.size() - 1);
  }
  return rows;
}

/// The columns of a series, row by row.
class SeriesRows {
 public:
  explicit SeriesRows(const op::Fp8RecipeParams& p)
      : rules_(data::delayed_scaling_of(p)),
        range_(good_scaling(rules_.format)),
        scales_(static_cast<std::size_t>(p.scales())) {}

  /// `of_step`: its tensors that have data.
  void add(std::size_t step, std::span<const Scaled> of_step) {
    add_value(0, static_cast<double>(step));
    if (of_step.empty()) {
      for (std::size_t column = 1; column < series_.size(); ++column) {
        add_value(column, std::numeric_limits<double>::quiet_NaN());
      }
      return;
    }
    const Scaled& worst =
        *std::ranges::max_element(of_step, {}, [this](const Scaled& one) { return badness(one, range_); });
    const ScalingLoss loss = scaling_loss(worst.largest(), rules_.format);
    const auto dead = std::ranges::count_if(of_step, [this](const Scaled& one) {
      return core::round_to(one.largest(), rules_.format, core::Overflow::saturate) == 0;
    });
    std::size_t column = 0;
    for (const double value : {static_cast<double>(worst.at % scales_), worst.scale,
                               static_cast<double>(rules_.scale_for(static_cast<float>(worst.amax), 1)), loss.clipped,
                               loss.underflow, loss.sqnr_db, static_cast<double>(dead)}) {
      add_value(++column, value);
    }
  }
  [[nodiscard]] op::Series take() { return std::move(series_); }

 private:
  void add_value(std::size_t column, double value) { series_[column].values.push_back(value); }

  data::DelayedScaling rules_;
  ScalingRange range_;
  std::size_t scales_;
  op::Series series_ = {{"step", "", "number of the step", {}},
                        {"tensor", "", "number of the tensor whose scale is farthest off in it", {}},
                        {"scale_used", "scale", "the scale that is used for it", {}},
                        {"scale_implied", "scale", "the scale that its own amax in this step implies", {}},
                        {"clipped", "share", "of normal data with that amax, what is stored as the largest number", {}},
                        {"underflow", "share", "of these data, what becomes 0", {}},
                        {"sqnr_db", "dB", "signal to noise of these data", {}},
                        {"dead_tensors", "tensors", "those of the step of which nothing is left but zeros", {}}};
};

op::Series series_of(std::span<const Scaled> steps, const op::Fp8RecipeParams& p) {
  const auto scales = static_cast<std::size_t>(p.scales());
  const auto step_of = [scales](const Scaled& one) { return one.at / scales; };
  SeriesRows rows(p);
  for (const std::size_t step : rows_of(static_cast<std::size_t>(p.steps))) {
    const auto of_step = std::ranges::equal_range(steps, step, {}, step_of);
    rows.add(step, {of_step.begin(), of_step.end()});
  }
  return rows.take();
}

op::Finding finding_of(const std::vector<Scaled>& steps, const op::Fp8RecipeParams& p) {
  const ScalingRange range = good_scaling(data::delayed_scaling_of(p).format);
  const auto scales = static_cast<std::size_t>(p.scales());
  std::vector<std::size_t> bad;
  for (const Scaled& step : steps) {
    if (step.largest() < range.smallest || step.largest() > range.largest) {
      bad.push_back(step.at / scales);
    }
  }
  op::Finding finding;
  finding.name = "steps that lose 3 dB";
  finding.port = "scales";
  finding.measured = static_cast<double>(bad.size()) / static_cast<double>(steps.size());
  finding.text = bad.empty() ? fmt::format("none of {} steps of tensors", steps.size())
                             : fmt::format("{} of {} steps of tensors, from step {} to step {}", bad.size(),
                                           steps.size(), bad.front(), bad.back());
  finding.series = series_of(steps, p);
  return finding;
}

/// The steps that have data, in their order.
std::vector<Scaled> steps_with_data(const op::FindingRequest& request) {
  const op::Operand& amaxes = op::operand_named(request.inputs, "amaxes");
  const auto scales = std::ranges::find(request.outputs, "scales", &op::Delivered::port);
  std::vector<Scaled> steps;
  for (std::size_t at = 0; scales != request.outputs.end() && at < amaxes.elements(); ++at) {
    const Scaled step = {at, amaxes.data[at], scales->value[at]};
    if (step.amax > 0 && step.scale >= 0 && std::isfinite(step.amax) && std::isfinite(step.scale)) {
      steps.push_back(step);
    }
  }
  return steps;
}

}  // namespace

ScalingLoss scaling_loss(double largest, core::Dtype format) {
  if (largest == 0) {
    return {0, 1, 0};  // all is lost
  }
  const core::DtypeInfo& info = core::dtype_info(format);
  const int top = std::ilogb(info.max_finite) - info.fraction_bits;  // exponent of the largest number's last bit
  const double beyond = info.max_finite + std::ldexp(0.5, top);      // halfway to the number that would come next
  std::size_t clipped = 0, underflow = 0;
  double signal = 0, noise = 0;
  for (const double unit : data_of_one()) {
    const double x = unit * largest;
    const double stored = core::round_to(x, format, core::Overflow::saturate);
    clipped += std::fabs(x) > beyond ? 1 : 0;
    underflow += x != 0 && stored == 0 ? 1 : 0;
    // In units of the largest number, whose square does not overflow.
    signal += unit * unit;
    noise += (stored - x) / largest * ((stored - x) / largest);
  }
  constexpr double kDecibel = 10, kAll = kNumbers;
  return {static_cast<double>(clipped) / kAll, static_cast<double>(underflow) / kAll,
          noise == 0 ? std::numeric_limits<double>::infinity() : kDecibel * std::log10(signal / noise)};
}

ScalingRange good_scaling(core::Dtype format) {
  static const ScalingRange e4m3 = range_of(core::Dtype::fp8_e4m3), e5m2 = range_of(core::Dtype::fp8_e5m2);
  return format == core::Dtype::fp8_e5m2 ? e5m2 : e4m3;
}

std::vector<op::Finding> scaling_findings(const op::FindingRequest& request) {
  const auto p = op::from_params<op::Fp8RecipeParams>(*request.params);
  const std::vector<Scaled> steps = steps_with_data(request);
  if (steps.empty()) {
    return {};
  }
  const auto [smallest, largest] = std::ranges::minmax_element(steps, {}, &Scaled::largest);
  return {finding_of("largest scaled amax", *largest, p), finding_of("smallest scaled amax", *smallest, p),
          finding_of(steps, p)};
}

}  // namespace numcheck::reference
