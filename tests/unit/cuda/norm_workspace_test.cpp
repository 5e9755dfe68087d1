// Our own norm gradients refuse a workspace that cannot hold the partial sums of all blocks, before anything runs, so
// the test needs no GPU.
#include <gtest/gtest.h>

#include "kernels/cuda/norm_kernel.hpp"

namespace numcheck::kernels::cuda {
namespace {

NormBackward sizes(std::int64_t rows, std::int64_t hidden, Storage storage) {
  NormBackward launch;
  launch.rows = rows;
  launch.hidden = hidden;
  launch.x.storage = storage;
  return launch;
}

TEST(NormWorkspace, too_small_is_refused) {
  for (const Storage storage : {Storage::fp32, Storage::bf16, Storage::fp16}) {
    for (const std::int64_t hidden : {8, 259, 2048, 65536}) {
      for (const GammaRule rule : {GammaRule::plain, GammaRule::centred}) {
        NormBackward launch = sizes(1000, hidden, storage);
        launch.gamma_rule = rule;
        EXPECT_GE(layernorm_bwd_workspace(launch), 2 * sizeof(float) * static_cast<std::size_t>(hidden));
        EXPECT_GE(rmsnorm_bwd_workspace(launch), sizeof(float) * static_cast<std::size_t>(hidden));
        launch.partial_bytes = sizeof(float) * static_cast<std::size_t>(hidden) - 1;
        EXPECT_EQ(launch_layernorm_bwd(launch, nullptr), cudaErrorInvalidValue) << hidden;
        EXPECT_EQ(launch_rmsnorm_bwd(launch, nullptr), cudaErrorInvalidValue) << hidden;
      }
    }
  }
}

TEST(NormWorkspace, shapes_that_no_kernel_takes_are_refused) {
  EXPECT_EQ(launch_layernorm_bwd(sizes(std::int64_t{1} << 31, 8, Storage::fp32), nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch_rmsnorm_bwd(sizes(1, 0, Storage::fp32), nullptr), cudaErrorInvalidConfiguration);
}

}  // namespace
}  // namespace numcheck::kernels::cuda
