// Statistics have the same bits for every number of threads and every instruction set.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

std::vector<double> numbers_of(const ErrorNorms& n) {
  return {n.max_abs, n.max_rel, n.l1, n.l2, n.linf, n.rel_l2, n.rms, n.mean_signed, n.nmse, n.sqnr_db, n.cosine};
}

/// Every number of the statistics, in order.
std::vector<double> numbers_of(const Statistics& s) {
  std::vector<double> out = {s.rms_expected,
                             s.effective_bits,
                             s.max_ulp,
                             s.max_ulp_at_rms.value_or(-1),
                             s.flip_rate.value_or(-1),
                             s.flip_rate_predicted.value_or(-1),
                             s.residual_distance.value_or(-1),
                             s.slope_clusters,
                             s.slope_flip_se,
                             s.slope_flip_drift,
                             s.slope_flip_step,
                             s.repeats,
                             s.mean_ulp,
                             s.max_over_bound,
                             s.z_rms,
                             s.z_q999,
                             s.z_max,
                             s.slope,
                             s.slope_se,
                             s.coherence,
                             s.intercept,
                             s.toward_zero,
                             s.spread_ulps,
                             s.rounding_ratio,
                             s.rounding_ratio_perfect,
                             s.rounding_sd,
                             s.rounding_arith,
                             s.max_over_half_ulp,
                             s.slope_predicted_se,
                             s.plan_limit_over_bound};
  for (const ErrorNorms* norms : {&s.arithmetic, &s.total}) {
    const std::vector<double> more = numbers_of(*norms);
    out.insert(out.end(), more.begin(), more.end());
  }
  for (const std::uint64_t count : {s.elements, s.finite, s.nonfinite_mismatch, s.order_dependent, s.poison,
                                    s.zeros_got, s.exact_mismatch, s.rounding_elements}) {
    out.push_back(static_cast<double>(count));
  }
  for (const Flips& flips : s.flips) {
    out.insert(out.end(), {static_cast<double>(flips.count), static_cast<double>(flips.found), flips.allowed});
  }
  for (const std::uint64_t count : s.ulp_histogram) {
    out.push_back(static_cast<double>(count));
  }
  if (s.terms) {
    out.insert(out.end(), {s.terms->backward_error, s.terms->backward_error_scaled, s.terms->max_ulp});
    out.insert(out.end(), s.terms->condition_histogram.begin(), s.terms->condition_histogram.end());
  }
  for (const Opinion* opinion : {&s.torch_allclose, &s.numpy_allclose, &s.te_compare, &s.plan_allclose}) {
    out.push_back(static_cast<double>(opinion->mismatches));
    out.push_back(opinion->max_excess);
  }
  for (const Group* group : {&s.groups.row, &s.groups.column, &s.groups.tile, &s.groups.matrix}) {
    out.insert(out.end(), {static_cast<double>(group->index), static_cast<double>(group->elements), group->excess});
  }
  for (const Lattice& lattice : s.lattices) {
    out.insert(out.end(), {static_cast<double>(lattice.count), static_cast<double>(lattice.found), lattice.expected});
  }
  for (const Worst& worst : s.worst) {
    out.insert(out.end(), {static_cast<double>(worst.index), worst.got, worst.expected, worst.ulps, worst.over_bound});
  }
  return out;
}

class Invariance : public testing::TestWithParam<Dtype> {
 protected:
  void TearDown() override {
    core::set_thread_count(threads_);
    core::force_isa(isa_);
  }

 private:
  int threads_ = core::thread_count();
  core::Isa isa_ = core::active_isa();
};

Problem interesting(Dtype dtype, bool sampled) {
  Problem p = make_problem(dtype, {3, 131, 1201, 3, 1}, 1e-4, 41);
  p.model.spacing = model::Spacing{.value = 0x1p-18, .second = 0x1p-18, .magnitude = 0x1p-20};
  p.model.terms = true;
  p.unrounded = p.expected;
  for (double& y : p.unrounded) {
    y *= 1.001;
  }
  p.set_got(77, std::numeric_limits<double>::quiet_NaN());
  p.set_got(1000, 1e30);
  p.expected[4000] = std::numeric_limits<double>::infinity();
  p.expected[5000] = 0;
  if (sampled) {
    std::vector<double> expected, unrounded;
    std::vector<float> magnitude, second;
    for (std::int64_t i = 0; i < p.port.elements(); i += 1 + i % 4) {
      const auto at = static_cast<std::size_t>(i);
      p.sample.indices.push_back(i);
      expected.push_back(p.expected[at]);
      unrounded.push_back(p.unrounded[at]);
      magnitude.push_back(p.magnitude[at]);
      second.push_back(p.deviation[at]);
    }
    p.expected = expected;
    p.unrounded = unrounded;
    p.magnitude = magnitude;
    p.deviation = second;
  }
  return p;
}

TEST_P(Invariance, same_bits) {
  for (const bool sampled : {false, true}) {
    const Problem p = interesting(GetParam(), sampled);
    CompareInput in = p.input();
    in.have_allclose = true;
    in.rtol = 1e-4;
    in.atol = 1e-6;
    core::set_thread_count(1);
    core::force_isa(core::Isa::baseline);
    const std::vector<double> expected = numbers_of(compare(in));
    EXPECT_GT(expected[0], 0);
    for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
      if (!core::is_supported(isa)) {
        continue;
      }
      core::force_isa(isa);
      for (const int threads : {1, 2, 5}) {
        core::set_thread_count(threads);
        const std::vector<double> got = numbers_of(compare(in));
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          EXPECT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
              << "number " << i << " with " << core::isa_name(isa) << " and " << threads << " threads: " << got[i]
              << " for " << expected[i];
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Invariance,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3, Dtype::fp8_e5m2));

}  // namespace
}  // namespace numcheck::metric
