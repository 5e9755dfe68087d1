// NVFP4 outputs as numbers.
#pragma once

#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "op/quantize.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// The two codes of every byte.
[[nodiscard]] core::Buffer<double> nvfp4_numbers(std::span<const double> bytes);

/// What a device delivered for one layout of `quantize` with the recipe nvfp4, with one code per element, with scales of which
/// each is that of its codes alone: scale_inv global_amax / 2688, and with x transformed if the layout's codes are made of that. The
/// given request must outlive this object.
class Nvfp4Delivered {
 public:
  Nvfp4Delivered(const op::FindingRequest& request, const op::QuantizeParams& p, const op::BlockLayout& layout);
  [[nodiscard]] const op::FindingRequest& request() const noexcept { return request_; }

 private:
  std::vector<core::Buffer<double>> numbers_;
  std::vector<op::Delivered> outputs_;
  std::vector<op::Operand> inputs_;
  op::FindingRequest request_;
};

}  // namespace numcheck::reference
