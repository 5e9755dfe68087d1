// Dropout of attention's weights, as the references see it.
#pragma once

#include <cstdint>
#include <span>

#include "op/attention_params.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// mask / (1 - dropout) of every weight.
class AttentionDropout {
 public:
  /// Operands are those of the ports of op::attention_fwd; they must outlive this object.
  AttentionDropout(const op::AttentionParams& p, std::span<const op::Operand> operands);

  [[nodiscard]] bool is_none() const noexcept { return mask_ == nullptr; }
  [[nodiscard]] double scale() const noexcept { return scale_; }
  /// Multiplies numbers of query i and the keys from keys.begin on. Precondition: there is a mask.
  void multiply(std::int64_t batch, std::int64_t head, std::int64_t i, const op::KeyRange& keys,
                std::span<double> numbers) const;

 private:
  std::int64_t heads_, sq_, sk_;
  double scale_;
  const op::Operand* mask_;
};

/// A mask from draws of any distribution: 0 with the probability `dropout`, otherwise 1. It depends on the draws and on
/// where they are, so that equal draws are not all dropped.
void derive_dropout_mask(const op::AttentionParams& p, std::span<double> values);

}  // namespace numcheck::reference
