// cuDNN's own answers to random cases of attention, on architectures that this machine lacks, against the rows of
// configs/attention_gates.json. Every disagreement is printed; a row that claims a refusal must be right.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attention_problem.hpp"
#include "attention_question.hpp"
#include "deviceless.hpp"
#include "eligibility/attention_gates.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "tests/unit/attention/gate_tally.hpp"
#include "tests/unit/attention/near_gates.hpp"

namespace numcheck::kernels::cudnn {
namespace {

using eligibility::Refusal;

class CudnnGateAgreement : public test::Deviceless {
 protected:
  [[nodiscard]] static std::vector<Refusal> rows_for(const op::AttentionParams& p, bool backward) {
    return eligibility::refusals(eligibility::Selector::cudnn, p,
                                 {.storage = core::Dtype::bf16,
                                  .training = backward,
                                  .backward = backward,
                                  .deterministic = backward,
                                  .sm = GetParam(),
                                  .cudnn = static_cast<std::int64_t>(library().get_version())});
  }

  [[nodiscard]] static bool is_known_version() { return library().get_version() / 100 == test::kKnownVersion; }
};

TEST_P(CudnnGateAgreement, rows_that_claim_a_refusal_are_right) {
  constexpr int kCases = 120;
  std::mt19937_64 generator(static_cast<std::uint64_t>(GetParam()));
  numcheck::test::GateTally tally("cuDNN " + library().version() + " on sm_" + std::to_string(GetParam()));
  for (int i = 0; i < kCases; ++i) {
    const bool backward = i % 2 == 1;
    op::AttentionParams p = numcheck::test::case_near_gates(generator);
    p.max_logit = p.max_logit && !backward;
    const test::Problem problem = test::problem(backward ? op::attention_bwd() : op::attention_fwd(), p, "bf16");
    const std::vector<Refusal> rows = rows_for(p, backward);
    const Refusal* wrong = tally.add(rows, test::ask(library(), target(), problem), problem.c.id);
    if (wrong != nullptr) {
      EXPECT_FALSE(is_known_version()) << problem.c.id << ": " << wrong->sentence;
    }
  }
  tally.print();
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudnnGateAgreement, ::testing::Values(80, 89, 90, 100, 120),
                         [](const auto& parameter) { return "sm_" + std::to_string(parameter.param); });

}  // namespace
}  // namespace numcheck::kernels::cudnn
