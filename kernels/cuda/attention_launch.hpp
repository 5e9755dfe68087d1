// Cases of attention in the form that the launchers expect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/cuda/attention_kernel.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::kernels::cuda {

/// Why our kernels do not compute the case; empty if they do.
[[nodiscard]] std::string attention_obstacle(const Call& call);

/// What the kernels read besides the ports, in workspace: ALiBi's slopes of heads, and where sequences of layout thd begin.
/// Empty if the case has neither.
class AttentionTables {
 public:
  explicit AttentionTables(const op::AttentionParams& p);

  [[nodiscard]] std::size_t bytes() const noexcept { return image_.size(); }
  /// Copies them to device memory.
  void upload(cuda_support::CudaDevice& device, std::byte* to) const;
  [[nodiscard]] const float* slopes(const std::byte* uploaded) const noexcept;
  /// Of queries or keys; null if sequences are not ragged.
  [[nodiscard]] const int* starts(const std::byte* uploaded, op::Side side) const noexcept;

 private:
  std::vector<std::byte> image_;
  std::size_t starts_at_ = 0;  ///< slopes before
  std::size_t batches_ = 0;    ///< that have starts
};

/// The ports and tables of a launch in the form of the kernels.
class AttentionPorts {
 public:
  /// `uploaded`: the tables in device memory.
  AttentionPorts(const op::AttentionParams& p, std::span<const PortMemory> ports, const AttentionTables& tables,
                 const std::byte* uploaded)
      : p_(p), ports_(ports), tables_(tables), uploaded_(uploaded) {}

  [[nodiscard]] AttentionRules rules() const;
  /// The tensor of that port, whose positions belong to queries or to keys.
  [[nodiscard]] HeadTensor heads(std::string_view port, op::Side side, std::int64_t channels) const;

 private:
  const op::AttentionParams& p_;
  std::span<const PortMemory> ports_;
  const AttentionTables& tables_;
  const std::byte* uploaded_;
};

}  // namespace numcheck::kernels::cuda
