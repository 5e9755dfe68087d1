#include "reference/flushed_subnormals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <string_view>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "reference/cause.hpp"
#include "reference/tracked_output.hpp"
#include "tolerance/flushable.hpp"

namespace numcheck::reference {
namespace {

bool is_broken(double got, double expected) {
  return (!std::isfinite(got) || !std::isfinite(expected)) && got != expected &&
         !(std::isnan(got) && std::isnan(expected));
}

/// What the output's format makes of y, or of a number `deviation` times a few away from it, whichever is nearest to `got`: equal
/// numbers, of which there may be many, have equal roundings. FP32's are part of the bound.
double stored(double y, double deviation, double got, const op::Delivered& output) {
  constexpr double kFew = 3;
  if (core::dtype_info(output.dtype).storage_bytes == 4) {
    return y;
  }
  const auto rounded = [&output](double x) { return core::round_to(x * output.scale, output.dtype) / output.scale; };
  return std::clamp(got, rounded(y - kFew * deviation), rounded(y + kFew * deviation));
}

/// What rounding a result of that magnitude to the output's format may add. FP32's is part of the bound.
double rounding(double magnitude, const op::Delivered& output) {
  const bool rounds = std::isfinite(magnitude) && core::dtype_info(output.dtype).storage_bytes < 4;
  return rounds ? core::ulp(magnitude * output.scale, output.dtype) / output.scale / 2 : 0;
}

/// Whether flushes that may take `lost` from y account for what was `got` instead, which is off by more than it may be: by all that
/// they may take, because a result that is off by a part of it has another cause, or terms of it that cancel, which flushed inputs
/// show; of sums of subnormal numbers, by any part of it, but not so that all of y, and more, is taken. Where they may leave anything,
/// that is y itself, and a zero for a subnormal y needs no more.
bool accounts(double got, double allowed, double lost, double y) {
  constexpr double kLeast = 63.0 / 64;  // of what is lost
  constexpr double kOfY = 1 + 0x1p-10;
  constexpr double kTiny = 0x1p-100;
  if (got == 0 && std::fabs(y) < tolerance::kMayFlush) {
    return true;
  }
  const double off = std::fabs(got - y);
  const double taken = lost < TrackedOutput::kMaxBound ? lost : std::max(std::fabs(y), tolerance::kMayFlush);
  if (taken < kTiny) {
    const bool turns = got != 0 && std::signbit(got) != std::signbit(y) && taken <= kOfY * std::fabs(y);
    return off <= allowed + taken && !turns;
  }
  return off <= allowed + taken && off + allowed >= kLeast * taken;
}

/// Null if there is none.
const op::OutputValues* output_of(const op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  return found == values.outputs.end() ? nullptr : &*found;
}

struct Count {
  double wrong = 0, explained = 0;
};

/// Numbers that no flush touches: whether they are as far off as they may be, all together, so that nothing else is wrong with them.
class Untouched {
 public:
  /// `deviation` is predicted of got - y, a rounding to the output's format included.
  void add(double got, double y, double deviation) {
    if (y == 0 || !std::isfinite(y) || !(deviation > 0)) {
      return;
    }
    const double weight = 1 / (deviation * deviation), off = got - y;
    errors_ += weight * off * off;
    along_ += weight * off * y;
    signal_ += weight * y * y;
    count_ += 1;
  }
  [[nodiscard]] bool are_right() const {
    constexpr double kFewest = 16, kMostRms = 2.5, kErrors = 8;
    constexpr double kAlike = 0x1p-22;  // of statistics that a row, or all rows, share
    return count_ < kFewest || (errors_ <= kMostRms * kMostRms * count_ &&
                                std::fabs(along_) <= std::max(kErrors * std::sqrt(signal_), kAlike * signal_));
  }

 private:
  double errors_ = 0, along_ = 0, signal_ = 0, count_ = 0;
};

struct Counts {
  Count numbers, pattern;
  bool others_are_right = true;  ///< numbers that no flush touches
};

/// Inputs with zeros for their subnormal numbers. Those without any are views of what is given.
class FlushedInputs {
 public:
  explicit FlushedInputs(std::span<const op::Operand> inputs) : operands_(inputs.begin(), inputs.end()) {
    for (op::Operand& input : operands_) {
      const std::span<const double> values(input.data, input.elements());
      const auto is_subnormal = [scale = input.scale](double x) {
        return x != 0 && std::fabs(x * scale) < tolerance::kFlush;
      };
      if (std::ranges::any_of(values, is_subnormal)) {
        std::vector<double>& copy = copies_.emplace_back(values.begin(), values.end());
        std::ranges::replace_if(copy, is_subnormal, 0.0);
        input.data = copy.data();
      }
    }
  }
  [[nodiscard]] bool any() const noexcept { return !copies_.empty(); }
  [[nodiscard]] const std::vector<op::Operand>& operands() const noexcept { return operands_; }

 private:
  std::vector<op::Operand> operands_;
  std::deque<std::vector<double>> copies_;  // addresses stay
};

/// One output of an op, as explain_flushes needs it.
struct Views {
  const op::OutputValues& expected;
  const op::OutputValues& lost;
  const op::OutputValues* of_flushed;  ///< from inputs that are flushed; null if none of them is subnormal
  const op::OutputValues* lost_of_flushed;
  FlushedResults* flushed;  ///< may be null
};

/// Whether that is the result of inputs without subnormal numbers, flushed on the way or not. What inputs lose can cancel in it, so
/// that it is nearer to y than `accounts` takes for a flush.
bool is_of_flushed(double got, std::size_t at, const Views& views, const op::Delivered& output) {
  if (views.of_flushed == nullptr) {
    return false;
  }
  const double y = views.of_flushed->value[at];
  const auto bound = static_cast<double>(views.of_flushed->magnitude[at]);
  if (!std::isfinite(y) || !std::isfinite(got)) {
    return got == y || (std::isnan(got) && std::isnan(y));
  }
  const double allowed = bound + rounding(std::fabs(y), output);
  const auto lost = static_cast<double>(views.lost_of_flushed->magnitude[at]);
  return bound < TrackedOutput::kMaxBound && (std::fabs(got - y) <= allowed || accounts(got, allowed, lost, y));
}

/// Whether some order of multiplications leaves that where all is flushed, but for `allowed`.
bool is_of_some_order(double got, std::size_t at, double allowed, const Views& views, const op::Delivered& output) {
  if (views.flushed == nullptr) {
    return false;
  }
  return std::ranges::any_of(views.flushed->of(output.port, at), [&](double y) {
    return std::isfinite(y) && std::isfinite(got) ? std::fabs(got - y) <= allowed + rounding(std::fabs(y), output)
                                                  : got == y || (std::isnan(got) && std::isnan(y));
  });
}

Counts count(const op::Delivered& output, const Views& views) {
  const op::OutputValues &expected = views.expected, &flushed = views.lost;
  Counts counts;
  Untouched untouched;
  for (std::size_t at = 0; at < output.value.size(); ++at) {
    const double got = output.value[at], y = expected.value[at];
    const auto bound = static_cast<double>(expected.magnitude[at]);
    const auto lost = static_cast<double>(flushed.magnitude[at]);
    if (std::isfinite(y) && !(bound < TrackedOutput::kMaxBound)) {
      continue;  // any result is right
    }
    if (is_broken(got, y)) {
      counts.pattern.wrong += 1;
      const bool may_be_nan = lost >= TrackedOutput::kMaxBound || flushed.deviation[at] > 0;
      counts.pattern.explained +=
          may_be_nan || is_of_flushed(got, at, views, output) || is_of_some_order(got, at, bound, views, output) ? 1
                                                                                                                 : 0;
    } else if (std::isfinite(got)) {
      const double off = std::fabs(got - y);
      const bool wrong = off > bound + rounding(std::fabs(y), output);
      const double most = bound + rounding(std::max(std::fabs(got), std::fabs(y)), output);
      counts.numbers.wrong += wrong ? 1 : 0;
      const bool explained = wrong && (accounts(got, most, lost, y) || is_of_flushed(got, at, views, output) ||
                                       is_of_some_order(got, at, bound, views, output));
      counts.numbers.explained += explained ? 1 : 0;
      if (lost == 0 && wrong) {
        counts.others_are_right = counts.others_are_right && explained;
      } else if (lost == 0) {
        const double deviation = expected.deviation[at];
        untouched.add(got, stored(y, deviation, got, output),
                      std::hypot(deviation, rounding(std::fabs(y), output) / std::sqrt(3.0)));
      }
    }
  }
  counts.others_are_right = counts.others_are_right && untouched.are_right();
  return counts;
}

}  // namespace

void explain_flushes(const op::FindingRequest& request, op::Values (*values)(const op::ReferenceRequest&),
                     op::Values (*losses)(const op::ReferenceRequest&), FlushedResults* flushed,
                     std::vector<op::Finding>& findings) {
  if (!request.sample->all()) {
    return;
  }
  const op::Values lost = losses({.params = request.params, .inputs = {request.inputs.begin(), request.inputs.end()}});
  const FlushedInputs inputs(request.inputs);
  const op::ReferenceRequest again{.params = request.params, .inputs = inputs.operands()};
  const op::Values of_flushed = inputs.any() ? values(again) : op::Values{};
  const op::Values lost_of_flushed = inputs.any() ? losses(again) : op::Values{};
  for (const op::Delivered& output : request.outputs) {
    const op::OutputValues* expected = output_of(*request.expected, output.port);
    const op::OutputValues* other = output_of(lost, output.port);
    if (expected == nullptr || other == nullptr || expected->value.size() != output.value.size() ||
        expected->magnitude.empty()) {
      continue;  // an amax, of which only the tensor is expected
    }
    const Counts counts = count(output, {*expected, *other, output_of(of_flushed, output.port),
                                         output_of(lost_of_flushed, output.port), flushed});
    const auto add = [&](const Count& of, op::Finding::About about) {
      if (of.explained / of.wrong >= kLeastExplained) {
        findings.push_back(cause_finding(op::kSubnormalsAsZeros, output.port, of.explained / of.wrong,
                                         "subnormal numbers are taken for zero", "what is wrong", about));
      }
    };
    if (counts.others_are_right) {
      add(counts.numbers, op::Finding::About::numbers);
    }
    add(counts.pattern, op::Finding::About::pattern);
  }
}

}  // namespace numcheck::reference
