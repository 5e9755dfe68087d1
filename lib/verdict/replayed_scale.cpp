#include "verdict/replayed_scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/buffer.hpp"
#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "model/operand_image.hpp"
#include "model/product.hpp"
#include "model/schedule.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "tolerance/replayed_scale.hpp"

namespace numcheck::verdict {
namespace {

using core::Dtype;
using model::PrecisionClass;

constexpr std::int64_t kOutputs = 1024;
constexpr std::int64_t kRows = 32;
constexpr std::int64_t kTerms = std::int64_t{1} << 25;  // of all outputs, per schedule
constexpr std::array kSplits = {1, 2, 3, 4, 5, 6, 7, 8};

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

class Replay {
 public:
  Replay(const EvaluationContext& context, const worker::RunReport& run, const ComparedPort& compared,
         const model::ErrorModel& model)
      : context_(context),
        mode_(*context.prepared->c->mode),
        p_(op::from_params<op::GemmParams>(context.prepared->c->params)),
        batch_(p_.batch / 2),
        conversion_(conversion_of(run)) {
    const std::int64_t most = std::min(kOutputs, kTerms / std::max<std::int64_t>(p_.k, 1));
    const std::int64_t columns = std::min(p_.n, std::max(most / std::min(kRows, p_.m), std::int64_t{1}));
    rows_ = spread(std::min(p_.m, most / columns), p_.m);
    columns_ = spread(columns, p_.n);
    load_operands();
    take_outputs(compared, model.output_scale);
  }

  [[nodiscard]] std::span<const tolerance::ReplayedOutput> outputs() const noexcept { return outputs_; }

  void replay(const model::Schedule& schedule) {
    core::Buffer<float> sums(outputs_.size());
    model::ProductOperands operands{a_.span(), b_.span(), rows(), columns(), p_.k};
    operands.a_emin = core::dtype_info(mode_.first).emin;
    operands.b_emin = core::dtype_info(mode_.second).emin;
    model::simulate_product(schedule, operands, sums.span());
    for (std::size_t n = 0; n < outputs_.size(); ++n) {
      outputs_[n].replayed = static_cast<double>(factor_ * sums[n]);
    }
  }

  [[nodiscard]] model::Schedule schedule(int split_k) const {
    const bool fp32 = context_.judged == PrecisionClass::fp32;
    if (fp32 || context_.arithmetic == model::MatrixArithmetic::fp32_chain) {
      return model::gemm_schedule(context_.device->sm, *op::find_mode("fp32"), false, false, split_k);
    }
    const op::Mode& mode = context_.judged == PrecisionClass::bf16_inputs ? *op::find_mode("bf16") : mode_;
    return model::gemm_schedule(context_.device->sm, mode, op::gemm_promotes(p_, mode), true, split_k);
  }

 private:
  [[nodiscard]] std::int64_t rows() const noexcept { return static_cast<std::int64_t>(rows_.size()); }
  [[nodiscard]] std::int64_t columns() const noexcept { return static_cast<std::int64_t>(columns_.size()); }

  [[nodiscard]] model::OperandConversion conversion_of(const worker::RunReport& run) const {
    if (mode_.first != Dtype::fp32 || context_.judged == PrecisionClass::fp32) {
      return {};
    }
    if (run.conversion) {
      return {.dtype = run.conversion->format, .rounding = run.conversion->rounding};
    }
    return {.dtype = context_.judged == PrecisionClass::bf16_inputs ? Dtype::bf16 : Dtype::tf32,
            .rounding = context_.judged == PrecisionClass::tf32_truncated ? core::Rounding::toward_zero
                                                                          : core::Rounding::nearest_even};
  }

  [[nodiscard]] model::MatrixView view_of(std::string_view name) const {
    const std::vector<op::Port>& ports = context_.prepared->ports;
    const auto at = std::ranges::find(ports, name, &op::Port::name);
    const std::int64_t bytes = core::dtype_info(at->dtype).storage_bytes;
    const std::byte* data = context_.host[static_cast<std::size_t>(at - ports.begin())].bytes.data();
    return {data + at->offset_bytes + batch_ * at->batch_stride * bytes, at->dtype, at->rows, at->cols, at->ld, 1};
  }

  void load_operands() {
    const model::MatrixView a = view_of("a"), b = view_of("b");
    a_ = core::Buffer<float>(static_cast<std::size_t>(rows() * p_.k));
    b_ = core::Buffer<float>(static_cast<std::size_t>(p_.k * columns()));
    model::load_matrix(p_.trans_a ? a.transposed() : a, rows_, {}, conversion_, a_.span());
    model::load_matrix(p_.trans_b ? b.transposed() : b, {}, columns_, conversion_, b_.span());
    const Dtype scalars = mode_.compute == op::Compute::fp16 ? Dtype::fp16 : Dtype::fp32;
    factor_ = static_cast<float>(core::round_to(p_.alpha, scalars));
    if (mode_.scaled) {
      const std::vector<op::Operand>& operands = context_.prepared->rounding->operands;
      factor_ *= static_cast<float>(operands[0].scale) * static_cast<float>(operands[1].scale);
    }
  }

  /// What was stored, and what exact sums of the same products are.
  void take_outputs(const ComparedPort& compared, double scale) {
    const op::Port& port = compared.port();
    const core::DtypeInfo& format = core::dtype_info(port.dtype);
    outputs_.resize(rows_.size() * columns_.size());
    core::parallel_for(rows_.size(), [&](std::size_t i) {
      std::vector<double> sums(columns_.size());
      for (std::int64_t t = 0; t < p_.k; ++t) {
        const double a = static_cast<double>(a_[i * static_cast<std::size_t>(p_.k) + static_cast<std::size_t>(t)]);
        const float* b = b_.data() + t * columns();
        for (std::size_t j = 0; j < sums.size(); ++j) {
          sums[j] += a * static_cast<double>(b[j]);
        }
      }
      for (std::size_t j = 0; j < sums.size(); ++j) {
        const std::int64_t flat = (batch_ * p_.m + rows_[i]) * p_.n + columns_[j];
        const double stored = core::decode(compared.bits_at(static_cast<std::size_t>(flat)), port.dtype);
        if (!std::isfinite(stored) || (format.storage_bytes == 1 && std::fabs(stored) >= format.max_finite)) {
          continue;  // it does not count: its expected value stays 0
        }
        const Neighbourhood near = neighbourhood(stored, port.dtype);
        outputs_[i * columns_.size() + j] = {
            .expected = static_cast<double>(factor_) * sums[j], .low = near.low / scale, .high = near.high / scale};
      }
    });
  }

  const EvaluationContext& context_;
  const op::Mode& mode_;
  op::GemmParams p_;
  std::int64_t batch_;
  model::OperandConversion conversion_;
  std::vector<std::int64_t> rows_, columns_;
  core::Buffer<float> a_, b_;
  float factor_ = 1;
  std::vector<tolerance::ReplayedOutput> outputs_;
};

/// Whether nothing but a factor comes between the sums and the output, and the arithmetic is that of one instruction.
bool is_replayable(const EvaluationContext& context, const worker::RunReport& run, const op::Port& port,
                   const model::ErrorModel& model) {
  const plan::Case& c = *context.prepared->c;
  if (c.op != &op::gemm() || port.name != "d" || model.exact || run.rounding.slices > 1 ||
      context.judged == PrecisionClass::unknown) {
    return false;
  }
  const auto p = op::from_params<op::GemmParams>(c.params);
  const bool emulated = c.mode->compute == op::Compute::emulated_bf16x9 && context.device->sm >= 100;
  return p.epilogue == "none" && p.beta == 0 && !p.bias && p.m > 0 && p.n > 0 && p.k > 0 && !emulated;
}

}  // namespace

std::optional<tolerance::Criterion> judge_replayed_scale(const EvaluationContext& context, const worker::RunReport& run,
                                                         const ComparedPort& compared, const model::ErrorModel& model) {
  if (!is_replayable(context, run, compared.port(), model)) {
    return {};
  }
  Replay replay(context, run, compared, model);
  if (!tolerance::are_telling(replay.outputs())) {
    return {};
  }
  for (const int split_k : kSplits) {
    const model::Schedule schedule = replay.schedule(split_k);
    replay.replay(schedule);
    auto criterion = tolerance::judge_scale(tolerance::fit_scale(replay.outputs()), model, schedule.text);
    if (criterion) {
      return criterion;
    }
  }
  return {};
}

}  // namespace numcheck::verdict
