// The answers of cuDNN and TransformerEngine on a real GPU to random cases of attention, against the rows of
// configs/attention_gates.json. Every disagreement is printed. TE_NUMCHECK_GATE_CASES: cases per library; TE_NUMCHECK_TE_LIB
// and LD_LIBRARY_PATH choose the libraries.
#include "eligibility/attention_gates.hpp"

#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "kernels/loader/probe.hpp"
#include "kernels/transformer_engine/attention_config.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "tests/unit/attention/gate_tally.hpp"
#include "tests/unit/attention/near_gates.hpp"
#include "tests/unit/cudnn/attention_problem.hpp"
#include "tests/unit/cudnn/attention_question.hpp"

namespace numcheck::kernels::test {
namespace {

using eligibility::Refusal;
using eligibility::Selector;
using numcheck::test::GateTally;
using numcheck::test::one_of;

int case_count() {
  const char* text = std::getenv("TE_NUMCHECK_GATE_CASES");
  return text == nullptr ? 200 : std::atoi(text);
}

class GpuAttentionGates : public ::testing::Test {
 protected:
  void SetUp() override {
    const loader::DriverState driver = loader::probe_driver();
    if (driver.kind != loader::DriverState::Kind::works) {
      GTEST_SKIP() << "no usable GPU: " << driver.sentence;
    }
    device_.emplace(0);
    device_->use();
    try {
      cudnn_ = std::make_unique<cudnn::Library>("");
    } catch (const core::EnvironmentError& error) {
      GTEST_SKIP() << "no usable cuDNN: " << error.what();
    }
  }

  [[nodiscard]] int sm() const { return device_->info().sm; }
  [[nodiscard]] std::int64_t cudnn_version() const { return static_cast<std::int64_t>(cudnn_->get_version()); }
  [[nodiscard]] cuda_support::CudaDevice& device() { return *device_; }
  [[nodiscard]] const cudnn::Library& cudnn() const { return *cudnn_; }

 private:
  std::optional<cuda_support::CudaDevice> device_;
  std::unique_ptr<cudnn::Library> cudnn_;
};

/// A case in one of the modes; FP8 has no bias tensors, dropout and largest score.
struct Drawn {
  op::AttentionParams p;
  std::string mode;
};

Drawn drawn(std::mt19937_64& generator) {
  Drawn made = {numcheck::test::case_near_gates(generator),
                one_of<std::string>(generator, {"bf16", "bf16", "fp16", "fp8_hybrid"})};
  if (made.mode == "fp8_hybrid") {
    made.p.bias = made.p.has_bias_tensor() ? "none" : made.p.bias;
    made.p.dropout = 0;
    made.p.max_logit = false;
  }
  return made;
}

TEST_F(GpuAttentionGates, of_cudnn) {
  std::mt19937_64 generator(1);
  const cudnn::Handle handle(cudnn(), device().stream());
  GateTally tally(fmt::format("cuDNN {} on sm_{}", cudnn().version(), sm()));
  for (int i = 0; i < case_count(); ++i) {
    const bool backward = i % 2 == 1;
    auto [p, mode] = drawn(generator);
    p.max_logit = p.max_logit && !backward;
    const cudnn::test::Problem problem =
        cudnn::test::problem(backward ? op::attention_bwd() : op::attention_fwd(), p, mode);
    const std::vector<Refusal> rows = eligibility::refusals(Selector::cudnn, p,
                                                            {.storage = problem.c.mode->first,
                                                             .training = backward,
                                                             .backward = backward,
                                                             .deterministic = backward,
                                                             .sm = sm(),
                                                             .cudnn = cudnn_version()});
    EXPECT_EQ(tally.add(rows, cudnn::test::ask(cudnn(), {handle.get(), nullptr}, problem), problem.c.id), nullptr);
  }
  tally.print();
}

TEST_F(GpuAttentionGates, of_transformer_engine) {
  using namespace transformer_engine;
  Search search = find_library({});
  if (!search.found.has_value()) {
    GTEST_SKIP() << "no usable TransformerEngine: " << search.problem;
  }
  const Library library(std::move(*search.found), "");
  const Context context = {library, &device(), device().info()};
  std::mt19937_64 generator(2);
  GateTally tally(
      fmt::format("TransformerEngine {} with cuDNN {} on sm_{}", library.version(), cudnn().version(), sm()));
  for (int i = 0; i < case_count();) {
    const auto [p, mode_name] = drawn(generator);
    const op::Mode& mode = *op::find_mode(mode_name);
    const auto pass = static_cast<AttentionPass>(generator() % 3);
    eligibility::Circumstances at = circumstances_of(mode, sm(), pass);
    at.cudnn = cudnn_version();
    if (!eligibility::first_refusal(Selector::fused_interface, p, at).empty()) {
      continue;  // it cannot be asked
    }
    ++i;
    const std::string words = fused_attention_refusal(context, p, mode, pass);
    const std::string name = fmt::format("{} {}", cudnn::test::problem(op::attention_fwd(), p, mode_name).c.id,
                                         pass == AttentionPass::backward           ? "backward"
                                         : pass == AttentionPass::training_forward ? "training"
                                                                                   : "inference");
    EXPECT_EQ(tally.add(eligibility::refusals(Selector::fused_kernels, p, at), {words.empty(), words}, name), nullptr);
  }
  tally.print();
}

}  // namespace
}  // namespace numcheck::kernels::test
