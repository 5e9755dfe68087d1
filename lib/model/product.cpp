#include "model/product.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/buffer.hpp"
#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "model/group_product.hpp"
#include "model/product_kernels.hpp"

namespace numcheck::model {
namespace {

constexpr std::int64_t kTileRows = 32;
constexpr std::int64_t kTileColumns = kFmaColumns;
constexpr std::int64_t kPiece = 256;  ///< products packed at once: the panels of a tile stay in the L2 cache
static_assert(kTileColumns % kFusedColumns == 0);

const ProductKernels& kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(product_kernels)();
}

KernelRounding kernel_rounding(Rounding rho) {
  switch (rho) {
    case Rounding::rz_fp32:
      return KernelRounding::rz_fp32;
    case Rounding::rz_e8m13:
      return KernelRounding::rz_e8m13;
    case Rounding::rne_fp16:
      return KernelRounding::rne_fp16;
  }
  throw core::InternalError("unknown rounding of a step");
}

StepParameters step_parameters(const Schedule& schedule) {
  StepParameters p;
  p.L = schedule.step.L;
  p.F = schedule.step.F;
  p.rounding = kernel_rounding(schedule.step.rho);
  p.e_zero = schedule.step.e_zero;
  p.accumulator_emin = core::dtype_info(accumulator_dtype(schedule.step.rho)).emin;
  return p;
}

/// Sums of a tile, row by row.
using TileSums = std::array<float, kTileRows * kTileColumns>;

/// Whether sums of products are multiplied by scales.
bool scales_sums(const Schedule& schedule, const LineScales& scales) {
  return scales.products > 0 && !(scales.in_products && schedule.chain == Schedule::Chain::fused);
}

/// One tile of the result.
class Tile {
 public:
  Tile(const Schedule& schedule, const StepParameters& step, const ProductOperands& operands, std::int64_t row,
       std::int64_t column)
      : schedule_(schedule),
        step_(step),
        operands_(operands),
        row_(row),
        column_(column),
        rows_(std::min(kTileRows, operands.m - row)),
        columns_(std::min(kTileColumns, operands.n - column)),
        scales_sums_(scales_sums(schedule, operands.scales)) {
    panel_f_ = core::Buffer<float>(kPiece * kTileColumns);
    if (schedule.chain == Schedule::Chain::fused) {
      a_value_ = core::Buffer<double>(kTileRows * kPiece);
      a_exponent_ = core::Buffer<std::int32_t>(kTileRows * kPiece);
      b_value_ = core::Buffer<double>(kPiece * kFusedColumns);
      b_exponent_ = core::Buffer<std::int32_t>(kPiece * kFusedColumns);
    }
  }

  void run(std::span<float> acc) {
    TileSums total{};
    bool first = true;
    for (const KRange& slice : slices_of(schedule_, operands_.k)) {
      slice_sums(slice);
      if (schedule_.slice_format) {
        round_to_slice_format(schedule_.adds_in_place ? total : slice_);
      }
      accumulate(total, slice_, first);
      first = false;
      if (!schedule_.reduces_slices) {
        break;
      }
    }
    if (scales_sums_ && operands_.scales.products >= operands_.k && !first) {
      for_each_element([&](std::int64_t r, std::int64_t c, std::size_t i) { total[i] = scaled(total[i], r, c, 0, 0); });
    }
    for (std::int64_t r = 0; r < rows_; ++r) {
      const float* from = total.data() + r * kTileColumns;
      std::copy(from, from + columns_, acc.data() + (row_ + r) * operands_.n + column_);
    }
  }

 private:
  static void accumulate(TileSums& sum, const TileSums& part, bool first) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = first ? part[i] : sum[i] + part[i];
    }
  }

  void round_to_slice_format(TileSums& sums) const {
    for (float& sum : sums) {
      sum = static_cast<float>(core::round_to(static_cast<double>(sum), *schedule_.slice_format));
    }
  }

  [[nodiscard]] float a_scale(std::int64_t r, std::int64_t part) const {
    return operands_.scales.a[static_cast<std::size_t>((row_ + r) * operands_.scales.parts + part)];
  }
  [[nodiscard]] float b_scale(std::int64_t c, std::int64_t part) const {
    return operands_.scales.b[static_cast<std::size_t>((column_ + c) * operands_.scales.parts + part)];
  }

  /// The sum of that part of k times the scales of an element of the tile, added to what is there.
  [[nodiscard]] float scaled(float sum, std::int64_t r, std::int64_t c, std::int64_t part, float there) const {
    const float a = a_scale(r, part), b = b_scale(c, part);
    if (operands_.scales.in_products) {  // whose product FP32 may not hold
      const auto own = static_cast<float>(static_cast<double>(sum) * static_cast<double>(a) * static_cast<double>(b));
      return part == 0 ? own : there + own;
    }
    const float scale = a * b;
    return part == 0 ? sum * scale : std::fma(sum, scale, there);
  }

  template <class Function>
  void for_each_element(const Function& function) const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t c = 0; c < columns_; ++c) {
        function(r, c, static_cast<std::size_t>(r * kTileColumns + c));
      }
    }
  }

  /// Adds the sums of a part of k, times its scales, in a fused multiply-add.
  void add_scaled(std::int64_t part) {
    for_each_element([&](std::int64_t r, std::int64_t c, std::size_t i) {
      slice_[i] = scaled(chain_[i], r, c, part, part == 0 ? 0 : slice_[i]);
    });
  }

  void slice_sums(const KRange& slice) {
    const bool in_parts = scales_sums_ && operands_.scales.products < operands_.k;
    const std::int64_t interval = in_parts ? operands_.scales.products : schedule_.promotion_interval;
    const std::int64_t length = interval == 0 ? slice.end - slice.begin : interval;
    for (std::int64_t begin = slice.begin; begin < slice.end; begin += length) {
      segment_sums({begin, std::min(begin + length, slice.end)});
      if (in_parts) {
        add_scaled(begin / length);
      } else {
        accumulate(slice_, chain_, begin == slice.begin);
      }
    }
  }

  void segment_sums(const KRange& segment) {
    chain_.fill(0);
    const std::int64_t step = schedule_.chain == Schedule::Chain::fused ? step_.L : 1;
    const std::int64_t piece = kPiece / step * step;
    for (std::int64_t begin = segment.begin; begin < segment.end; begin += piece) {
      const std::int64_t count = std::min(piece, segment.end - begin);
      schedule_.chain == Schedule::Chain::fma ? multiply_add(begin, count) : fuse(begin, count);
    }
  }

  /// Copies `width` columns of B, starting with `column`, into a panel; zeros beyond the edge of the matrix.
  void copy_panel(std::int64_t begin, std::int64_t count, std::int64_t column, std::int64_t width) {
    const std::int64_t present = std::clamp<std::int64_t>(operands_.n - column, 0, width);
    for (std::int64_t t = 0; t < count; ++t) {
      const float* from = operands_.b.data() + (begin + t) * operands_.n + column;
      float* to = panel_f_.data() + t * width;
      std::copy(from, from + present, to);
      std::fill(to + present, to + width, 0.0F);
    }
  }

  void multiply_add(std::int64_t begin, std::int64_t count) {
    copy_panel(begin, count, column_, kFmaColumns);
    FmaRun run;
    run.a = operands_.a.data() + row_ * operands_.k + begin;
    run.a_stride = operands_.k;
    run.b = panel_f_.data();
    run.c = chain_.data();
    run.c_stride = kTileColumns;
    run.rows = rows_;
    run.count = count;
    kernels().fma(run);
  }

  [[nodiscard]] bool scales_products() const { return operands_.scales.products > 0 && !scales_sums_; }

  static std::size_t at(std::int64_t row, std::int64_t width, std::int64_t column) {
    return static_cast<std::size_t>(row * width + column);
  }

  /// An operand times a power of two.
  static void multiply(float scale, double& value, std::int32_t& exponent) {
    value *= static_cast<double>(scale);
    exponent += exponent == kNoExponent || std::isnan(scale) ? 0 : std::ilogb(scale);
  }

  void scale_panel(std::int64_t begin, std::int64_t count, std::int64_t offset) {
    const std::int64_t present = std::min<std::int64_t>(columns_ - offset, kFusedColumns);
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t c = 0; c < present; ++c) {
        multiply(b_scale(offset + c, (begin + t) / operands_.scales.products), b_value_[at(t, kFusedColumns, c)],
                 b_exponent_[at(t, kFusedColumns, c)]);
      }
    }
  }

  void fuse(std::int64_t begin, std::int64_t count) {
    const ProductKernels& k = kernels();
    for (std::int64_t r = 0; r < rows_; ++r) {
      k.pack({operands_.a.data() + (row_ + r) * operands_.k + begin, a_value_.data() + r * kPiece,
              a_exponent_.data() + r * kPiece, count, operands_.a_emin});
      for (std::int64_t t = 0; scales_products() && t < count; ++t) {
        multiply(a_scale(r, (begin + t) / operands_.scales.products), a_value_[at(r, kPiece, t)],
                 a_exponent_[at(r, kPiece, t)]);
      }
    }
    for (std::int64_t offset = 0; offset < columns_; offset += kFusedColumns) {
      copy_panel(begin, count, column_ + offset, kFusedColumns);
      k.pack({panel_f_.data(), b_value_.data(), b_exponent_.data(), count * kFusedColumns, operands_.b_emin});
      if (scales_products()) {
        scale_panel(begin, count, offset);
      }
      for (std::int64_t r = 0; r < rows_; ++r) {
        k.fused(step_, {a_value_.data() + r * kPiece, a_exponent_.data() + r * kPiece, b_value_.data(),
                        b_exponent_.data(), chain_.data() + r * kTileColumns + offset, count});
      }
    }
  }

  const Schedule& schedule_;
  const StepParameters& step_;
  const ProductOperands& operands_;
  std::int64_t row_;
  std::int64_t column_;
  std::int64_t rows_;
  std::int64_t columns_;
  bool scales_sums_;  ///< there are scales, and instructions do not multiply with them
  TileSums chain_{};
  TileSums slice_{};
  core::Buffer<float> panel_f_;
  core::Buffer<double> a_value_;
  core::Buffer<std::int32_t> a_exponent_;
  core::Buffer<double> b_value_;
  core::Buffer<std::int32_t> b_exponent_;
};

void check(const Schedule& schedule, const ProductOperands& o, std::size_t results) {
  const auto count = [](std::int64_t rows, std::int64_t columns) { return static_cast<std::size_t>(rows * columns); };
  const LineScales& s = o.scales;
  const bool cuts = scales_sums(schedule, s) && s.products < o.k;  // where slices would cut as well
  if (s.products != 0 && (s.a.size() != count(o.m, s.parts) || s.b.size() != count(o.n, s.parts) ||
                          s.parts * s.products < o.k || (cuts && schedule.split_k != 1))) {
    throw core::InternalError("simulate_product: scales do not match");
  }
  if (o.a.size() != count(o.m, o.k) || o.b.size() != count(o.k, o.n) || results != count(o.m, o.n) ||
      !schedule.k_order.empty() || schedule.split_k < 1 || schedule.split_granularity < 1 ||
      schedule.promotion_interval < 0 || schedule.step.L < 1 || schedule.step.L > kPiece) {
    throw core::InternalError("simulate_product: sizes or schedule do not match");
  }
}

}  // namespace

void simulate_product(const Schedule& schedule, const ProductOperands& operands, std::span<float> acc) {
  check(schedule, operands, acc.size());
  if (acc.empty()) {
    return;
  }
  if (schedule.chain == Schedule::Chain::fused && operands.scales.in_groups) {
    simulate_groups(schedule, operands, acc);
    return;
  }
  StepParameters step;
  if (schedule.chain == Schedule::Chain::fused) {
    step = step_parameters(schedule);
  }
  const std::int64_t across = (operands.n + kTileColumns - 1) / kTileColumns;
  const std::int64_t down = (operands.m + kTileRows - 1) / kTileRows;
  core::parallel_for(static_cast<std::size_t>(across * down), [&](std::size_t index) {
    const auto i = static_cast<std::int64_t>(index);
    Tile(schedule, step, operands, i / across * kTileRows, i % across * kTileColumns).run(acc);
  });
}

}  // namespace numcheck::model
