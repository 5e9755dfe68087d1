#include "verdict/replayed_scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "op/grouped_gemm.hpp"
#include "tolerance/replayed_scale.hpp"
#include "verdict/product_replay.hpp"

namespace numcheck::verdict {
namespace {

using core::Dtype;

constexpr std::int64_t kOutputs = 1024;
constexpr std::int64_t kRows = 32;
constexpr std::int64_t kTerms = std::int64_t{1} << 25;  // of all outputs, per schedule

/// `count` of `all` positions, spread evenly.
std::vector<std::int64_t> spread(std::int64_t count, std::int64_t all) {
  std::vector<std::int64_t> positions;
  for (std::int64_t n = 0; n < count; ++n) {
    positions.push_back((2 * n + 1) * all / (2 * count));
  }
  return positions;
}

/// What is rounded to the stored number, which is finite.
struct Neighbourhood {
  double low, high;
};

Neighbourhood neighbourhood(double stored, Dtype format) {
  const double magnitude = std::fabs(stored);
  const double up = core::ulp(magnitude, format);
  // Below a power of two the next number is half as far away.
  const double inside = magnitude - up / 4;
  const double down = magnitude == 0 ? up : core::ulp(inside, format);
  const double low = magnitude - down / 2, high = magnitude + up / 2;
  return stored < 0 ? Neighbourhood{-high, -low} : Neighbourhood{low, high};
}

ProductReplay::Place spread_place(const op::GemmParams& p) {
  const std::int64_t most = std::min(kOutputs, kTerms / std::max<std::int64_t>(p.k, 1));
  const std::int64_t columns = std::min(p.n, std::max(most / std::min(kRows, p.m), std::int64_t{1}));
  return {p.batch / 2, spread(std::min(p.m, most / columns), p.m), spread(columns, p.n)};
}

/// What was stored, less what was added to sums, and what exact sums of the same products are.
std::vector<tolerance::ReplayedOutput> outputs_of(const ProductReplay& replay, const ComparedPort& compared,
                                                  const op::GemmParams& p, double scale) {
  const op::Port& port = compared.port();
  const core::DtypeInfo& format = core::dtype_info(port.dtype);
  const ProductReplay::Place& place = replay.place();
  constexpr double kOfAddition = 0x1p-23;  // FP32 sums of three numbers, in any order
  const bool relu = p.epilogue == "relu";
  std::vector<tolerance::ReplayedOutput> outputs(replay.size());
  core::parallel_for(place.rows.size(), [&](std::size_t i) {
    const std::vector<double> exact = replay.exact_row(i);
    const std::vector<ProductReplay::Addend> addends = replay.addends_of_row(i);
    for (std::size_t j = 0; j < exact.size(); ++j) {
      const std::int64_t flat = (place.batch * p.m + place.rows[i]) * p.n + place.columns[j];
      const double stored = core::decode(compared.bits_at(static_cast<std::size_t>(flat)), port.dtype);
      if (!std::isfinite(stored) || (format.storage_bytes == 1 && std::fabs(stored) >= format.max_finite)) {
        continue;  // it does not count: its expected value stays 0
      }
      if (relu && stored <= 0) {
        continue;  // of what relu cuts off nothing is left
      }
      const Neighbourhood near = neighbourhood(stored, port.dtype);
      const auto [added, magnitude] = addends[j];
      const double rounding = magnitude == 0 ? 0 : kOfAddition * (std::fabs(exact[j]) + magnitude);
      outputs[i * exact.size() + j] = {.expected = exact[j],
                                       .low = near.low / scale - added - rounding,
                                       .high = near.high / scale - added + rounding};
    }
  });
  return outputs;
}

}  // namespace

std::optional<tolerance::Criterion> judge_replayed_scale(const EvaluationContext& context, const worker::RunReport& run,
                                                         const ComparedPort& compared, const model::ErrorModel& model) {
  const std::optional<op::Product> product =
      replayable_product(context, run, model, compared.port().name, Beyond::addends);
  if (!product.has_value()) {
    return {};
  }
  const op::GemmParams& p = product->params;
  const ProductReplay replay(context, run, *product, spread_place(p));
  std::vector<tolerance::ReplayedOutput> outputs = outputs_of(replay, compared, p, model.output_scale);
  if (!tolerance::are_telling(outputs)) {
    return {};
  }
  for (const int split_k : kReplayedSplits) {
    const model::Schedule schedule = replayed_schedule(context, p, split_k);
    const std::vector<double> replayed = replay.replayed(schedule);
    for (std::size_t n = 0; n < outputs.size(); ++n) {
      outputs[n].replayed = replayed[n];
    }
    auto criterion = tolerance::judge_scale(tolerance::fit_scale(outputs), model, schedule.text);
    if (criterion) {
      return criterion;
    }
  }
  return {};
}

}  // namespace numcheck::verdict
