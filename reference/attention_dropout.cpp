#include "reference/attention_dropout.hpp"

#include <bit>
#include <cstddef>

#include "core/parallel.hpp"
#include "core/rng.hpp"

namespace numcheck::reference {
namespace {

/// Uniform in [0, 1).
double uniform_of(double draw, std::size_t at) {
  const auto bits = std::bit_cast<std::uint64_t>(draw);
  const core::PhiloxCounter words =
      core::philox4x32({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32U), 0, 0},
                       {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32U)});
  return static_cast<double>(words[0]) * 0x1p-32;
}

}  // namespace

AttentionDropout::AttentionDropout(const op::AttentionParams& p, std::span<const op::Operand> operands)
    : heads_(p.heads),
      sq_(p.sq),
      sk_(p.sk),
      scale_(p.keep_scale()),
      mask_(p.has_dropout() ? op::find_operand(operands, "dropout_mask") : nullptr) {}

void AttentionDropout::multiply(std::int64_t batch, std::int64_t head, std::int64_t i, const op::KeyRange& keys,
                                std::span<double> numbers) const {
  const double* mask = mask_->data + ((batch * heads_ + head) * sq_ + i) * sk_ + keys.begin;
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    numbers[n] *= scale_ * mask[n];
  }
}

void derive_dropout_mask(const op::AttentionParams& p, std::span<double> values) {
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  core::parallel_chunks(values.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t n = begin; n < end; ++n) {
      values[n] = uniform_of(values[n], n) < p.dropout ? 0 : 1;
    }
  });
}

}  // namespace numcheck::reference
