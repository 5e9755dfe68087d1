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
#include "op/attention_params.hpp"

namespace numcheck::kernels::cuda {

/// Why our kernels do not compute the case; empty if they do.
[[nodiscard]] std::string attention_obstacle(const Call& call);

/// The rules of a case. `slopes`: of ALiBi, in device memory; null if there are none.
[[nodiscard]] AttentionRules attention_rules(const op::AttentionParams& p, std::span<const PortMemory> ports,
                                             const float* slopes);

/// ALiBi's slope of each head; empty if the case has none.
[[nodiscard]] std::vector<float> alibi_slopes(const op::AttentionParams& p);

/// The tensor of that port, whose positions belong to queries: sq positions of `heads` heads.
[[nodiscard]] HeadTensor query_tensor(const op::AttentionParams& p, std::span<const PortMemory> ports,
                                      std::string_view name, std::int64_t channels);

/// The same for keys or values: sk positions of kv_heads heads.
[[nodiscard]] HeadTensor key_tensor(const op::AttentionParams& p, std::span<const PortMemory> ports,
                                    std::string_view name, std::int64_t channels);

}  // namespace numcheck::kernels::cuda
