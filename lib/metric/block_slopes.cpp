#include "metric/block_slopes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "metric/clusters.hpp"
#include "metric/reader.hpp"
#include "metric/setup.hpp"
#define NUMCHECK_ISA of_block_slopes
#include "metric/gate_flips.hpp"

namespace numcheck::metric {
namespace {

/// Sums over a block.
struct Sums {
  double errors = 0, signal = 0;  ///< w y e and w y^2
  double addends = 0;             ///< w c^2, c = model::ErrorModel::slope_addend
  double alike = 0, rounding = 0;
  double slack = 0;
  double drift = 0, nearer = 0;           ///< what flips are expected to add to `errors`, see FlipChance
  double aa = 0, ab = 0, bb = 0, b4 = 0;  ///< of the rows' errors a and signals b

  void add(const Sums& other) noexcept {
    errors += other.errors;
    signal += other.signal;
    addends += other.addends;
    alike += other.alike;
    rounding += other.rounding;
    slack += other.slack;
    drift += other.drift;
    nearer += other.nearer;
    aa += other.aa;
    ab += other.ab;
    bb += other.bb;
    b4 += other.b4;
  }
};

/// How the output is cut.
struct Shape {
  std::int64_t matrices, rows, columns, heads, width, blocks;

  explicit Shape(const op::Port& port)
      : matrices(port.batch),
        rows(port.rows),
        columns(port.cols),
        heads(std::max<std::int64_t>(1, port.heads)),
        width(port.cols / heads),
        blocks((port.rows + kBlockRows - 1) / kBlockRows) {}

  [[nodiscard]] std::size_t first_of(std::int64_t matrix, std::int64_t block) const noexcept {
    return static_cast<std::size_t>((matrix * blocks + block) * heads);
  }
};

class Collector {
 public:
  Collector(const CompareInput& input, const Setup& setup, const Shape& shape)
      : input_(input), setup_(setup), shape_(shape) {}

  /// Sums of all heads of one block of rows.
  void collect(std::int64_t matrix, std::int64_t block, std::span<Sums> sums) const {
    SegmentReader reader(input_, setup_);
    const std::int64_t end = std::min(shape_.rows, (block + 1) * kBlockRows);
    for (std::int64_t row = block * kBlockRows; row < end; ++row) {
      const std::int64_t first = (matrix * shape_.rows + row) * shape_.columns;
      for (std::int64_t head = 0; head < shape_.heads; ++head) {
        add_row(reader, first + head * shape_.width, sums[static_cast<std::size_t>(head)]);
      }
    }
  }

 private:
  /// Variance of got - RN(y) besides that of the error before rounding, whose deviation is given, in ulps: f (1 - f) if the
  /// fraction f of an ulp decides. No less than 1/12, so that a single number that is not the nearest may be anywhere.
  [[nodiscard]] double flips_of(double deviation) const noexcept {
    const double mean = deviation * std::sqrt(2 / std::numbers::pi);
    return setup_.format.narrow ? std::clamp(mean, 1.0 / 12, 1.0 / 6) : 0;
  }

  /// |w y| ulp of elements that may flip, and the same times the chance that they do.
  struct RowFlips {
    double possible = 0, likely = 0;

    /// The standard error of all of them together, which do no more than all that is possible.
    [[nodiscard]] double alike() const { return std::min(likely, possible / lambda_of(1)); }
  };

  /// Adds what the flips of an element are expected to do.
  void add_flips(const of_block_slopes::Element& element, double wy, Sums& sums, RowFlips& row) const noexcept {
    const auto at = of_block_slopes::boundaries_of(element.y, element.best, 2 / setup_.format.fraction_scale);
    if (element.y == 0 || !of_block_slopes::in_reach(at, element.deviation)) {
      return;
    }
    const auto chance = of_block_slopes::chance_of(at, element.best, element.deviation);
    sums.drift += wy * chance.drift;
    sums.nearer += wy * chance.nearer;
    row.possible += std::fabs(wy);
    row.likely += std::fabs(wy) * chance.predicted;
  }

  void add_row(SegmentReader& reader, std::int64_t first, Sums& sums) const {
    double row_error = 0, row_signal = 0, row_deviation = 0;
    RowFlips row_flips;
    for (std::int64_t at = 0; at < shape_.width; at += kSegment) {
      const auto size = static_cast<std::size_t>(std::min<std::int64_t>(kSegment, shape_.width - at));
      const SegmentView all = reader.read(first + at, size, first + at + static_cast<std::int64_t>(size));
      const SegmentView view = reader.without_specials(all, first + at, size);
      for (std::size_t i = 0; i < size; ++i) {
        if (of_block_slopes::is_unjudged(view, i)) {
          continue;
        }
        const auto element = of_block_slopes::element_of(view, i, setup_.format, setup_.model);
        const double rounding = flips_of(element.deviation) * element.reached * element.reached;
        const double variance = element.variance + rounding;
        const double wy = element.y / variance;
        if (!(variance < kUnknown) || !std::isfinite(wy)) {
          continue;
        }
        row_error += wy * (setup_.format.narrow ? element.error - element.best : element.error);
        sums.rounding += wy * wy * rounding;
        row_deviation += std::fabs(wy) * element.deviation;
        if (setup_.format.narrow) {
          add_flips(element, wy, sums, row_flips);
        }
        row_signal += wy * element.y;
        sums.addends += addend_share(element, 1 / variance, setup_.model);
      }
    }
    sums.errors += row_error;
    sums.signal += row_signal;
    const double row_alike = std::max(row_deviation, row_flips.alike());
    sums.alike += row_alike * row_alike;
    sums.aa += row_error * row_error;
    sums.ab += row_error * row_signal;
    sums.bb += row_signal * row_signal;
    sums.b4 += row_signal * row_signal * row_signal * row_signal;
    const auto slope = static_cast<double>(input_.row_slopes[static_cast<std::size_t>(first / shape_.width)]);
    sums.slack += row_signal == 0 ? 0 : row_signal * slope;
  }

  static constexpr double kUnknown = 1e30;  ///< in ulps

  const CompareInput& input_;
  const Setup& setup_;
  const Shape& shape_;
};

/// The one that is closest to its limit.
class Closest {
 public:
  Closest(const CompareInput& input, double repeats)
      : repeats_(repeats),
        drift_(1.5 * (std::fabs(input.model->slope_low) + std::fabs(input.model->slope_coherent))),
        shared_(input.model->slope_slack + drift_) {}

  void look_at(const Sums& sums, BlockSlope one) {
    if (!(sums.signal > 0) || !std::isfinite(sums.signal)) {
      return;
    }
    one.slope = sums.errors / sums.signal;
    const double drift = std::max(std::fabs(sums.drift), std::fabs(sums.nearer));
    one.slack = shared_ + drift_ * std::sqrt(sums.addends / sums.signal) + (sums.slack + drift) / sums.signal;
    one.alike = std::sqrt(repeats_ * (sums.alike + sums.rounding)) / sums.signal;
    one.independent = std::sqrt(repeats_ / sums.signal);
    const double squares = sums.aa - 2 * one.slope * sums.ab + one.slope * one.slope * sums.bb;
    one.scatter = std::sqrt(repeats_ * std::max(0.0, squares)) / sums.signal;
    one.clusters = sums.bb * sums.bb / sums.b4;
    one.count = ++count_;
    if (!std::isfinite(one.slack)) {
      return;
    }
    BlockSlope among = one;
    among.count = kTypical;
    const double over = std::fabs(one.slope) / among.limit();
    if (over > most_) {
      most_ = over;
      closest_ = one;
    }
  }
  [[nodiscard]] BlockSlope result() const {
    BlockSlope closest = closest_;
    closest.count = closest.count == 0 ? 0 : count_;
    return closest;
  }

 private:
  static constexpr std::uint64_t kTypical = 1000;  ///< blocks, to compare them with one another

  double repeats_, drift_, shared_;
  double most_ = -std::numeric_limits<double>::infinity();
  std::uint64_t count_ = 0;
  BlockSlope closest_;
};

}  // namespace

double BlockSlope::limit() const {
  const double lambda = lambda_of(count);
  const double shown =
      clusters < kFewestClusters ? std::numeric_limits<double>::infinity() : student_limit(lambda, clusters) * scatter;
  return slack + std::min(lambda * alike, std::max(shown, lambda * independent));
}

BlockSlope block_slope(const CompareInput& input, const Setup& setup, double repeats) {
  const bool sampled = input.sample != nullptr && !input.sample->all();
  if (input.row_slopes.empty() || sampled || input.model->exact || input.model->one_error) {
    return {};
  }
  const Shape shape(*input.port);
  std::vector<Sums> sums(static_cast<std::size_t>(shape.matrices * shape.blocks * shape.heads));
  const Collector collector(input, setup, shape);
  core::parallel_for(static_cast<std::size_t>(shape.matrices * shape.blocks), [&](std::size_t task) {
    const auto matrix = static_cast<std::int64_t>(task) / shape.blocks;
    const auto block = static_cast<std::int64_t>(task) % shape.blocks;
    collector.collect(matrix, block,
                      std::span(sums).subspan(shape.first_of(matrix, block), static_cast<std::size_t>(shape.heads)));
  });
  Closest closest(input, repeats);
  for (std::int64_t matrix = 0; matrix < shape.matrices; ++matrix) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      Sums all;
      for (std::int64_t block = 0; block < shape.blocks; ++block) {
        const Sums& one = sums[shape.first_of(matrix, block) + static_cast<std::size_t>(head)];
        all.add(one);
        const std::int64_t first = block * kBlockRows;
        closest.look_at(
            one,
            {.matrix = matrix, .first_row = first, .rows = std::min(kBlockRows, shape.rows - first), .head = head});
      }
      closest.look_at(all, {.matrix = matrix, .rows = shape.rows, .head = head});
    }
  }
  return closest.result();
}

}  // namespace numcheck::metric
