#include "verdict/replayed_amax.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "op/grouped_gemm.hpp"
#include "tolerance/gate_table.hpp"
#include "tolerance/replayed_scale.hpp"
#include "verdict/product_replay.hpp"

namespace numcheck::verdict {
namespace {

constexpr std::int64_t kOutputs = 32, kFewest = 8;
constexpr double kMayOverflow = 0x1p127;                // sums in FP32
constexpr std::int64_t kTerms = std::int64_t{1} << 22;  // of all outputs, per schedule

/// Of an output.
std::span<const double> values_of(const EvaluationContext& context, std::string_view output) {
  const auto d = std::ranges::find(context.prepared->ports, output, &op::Port::name);
  return expected_values(context, *d).value.span();
}

/// The positions of the largest |y|, the largest first.
std::vector<std::size_t> largest(std::span<const double> y, std::size_t count) {
  std::vector<std::size_t> order(y.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::ranges::partial_sort(order, middle, [y](std::size_t i, std::size_t j) {
    return std::fabs(y[i]) != std::fabs(y[j]) ? std::fabs(y[i]) > std::fabs(y[j]) : i < j;
  });
  order.resize(count);
  return order;
}

/// What one schedule makes of them.
struct Errors {
  double squares = 0, most = 0;
  std::size_t count = 0, inexact = 0;

  void add(double error) {
    squares += error * error;
    most = std::max(most, error);
    inexact += error > 0 ? 1 : 0;
    ++count;
  }
  [[nodiscard]] double deviation() const {
    constexpr double kRare = 3;
    return std::max(std::sqrt(squares / static_cast<double>(count)), most / kRare);
  }
};

}  // namespace

std::optional<tolerance::Criterion> judge_replayed_amax(const EvaluationContext& context, const worker::RunReport& run,
                                                        const ComparedPort& compared, const model::ErrorModel& model) {
  const op::Port& port = compared.port();
  if (port.role != op::Role::amax || !context.group->sample.all() || !std::isfinite(model.slope_slack) ||
      model.rows_agree || model.columns_agree) {
    return {};
  }
  const std::optional<op::Product> product = replayable_product(context, run, model, port.of);
  if (!product.has_value()) {
    return {};
  }
  const op::GemmParams& p = product->params;
  const std::span<const double> y = values_of(context, port.of);
  const std::int64_t count = std::min({kOutputs, kTerms / p.k, std::ssize(y)});
  if (count < kFewest || !std::ranges::all_of(y, [](double value) { return std::fabs(value) < kMayOverflow; })) {
    return {};
  }
  const std::vector<std::size_t> chosen = largest(y, static_cast<std::size_t>(count));
  std::vector<ProductReplay> replays;
  for (const std::size_t at : chosen) {
    const auto flat = static_cast<std::int64_t>(at);
    replays.emplace_back(context, run, *product,
                         ProductReplay::Place{flat / (p.m * p.n), {flat / p.n % p.m}, {flat % p.n}});
  }
  double deviation = 0;
  for (const int split_k : kReplayedSplits) {
    const model::Schedule schedule = replayed_schedule(context, p, split_k);
    Errors errors;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      errors.add(std::fabs(replays[i].replayed(schedule).front() - y[chosen[i]]));
    }
    if (2 * errors.inexact < errors.count) {
      return {};
    }
    deviation = std::max(deviation, errors.deviation());
  }
  const double most = std::fabs(y[chosen.front()]);
  const double got = core::decode(compared.bits_at(0), port.dtype);
  const double limit = model.slope_slack + tolerance::kReplayedFactors +
                       model.kappa * tolerance::lambda_of(static_cast<std::uint64_t>(count)) * deviation / most;
  const double measured = std::fabs(got - most) / most;
  return tolerance::Criterion{
      std::string(tolerance::gate_name(tolerance::Gate::replayed_amax)), measured, limit, measured <= limit,
      fmt::format("amax {:.9g} for {:.9g}; the {} largest results, replayed in 1 to {} slices, are "
                  "off by {:.3g} (rms)",
                  got, most, count, kReplayedSplits.back(), deviation)};
}

}  // namespace numcheck::verdict
