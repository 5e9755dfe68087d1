// Tests every gate at its limit.
#include <cmath>
#include <string>
#include <vector>

#include "judge_fixture.hpp"

namespace numcheck::tolerance {
namespace {

TEST(Judge, clean_statistics_pass_in_the_documented_order) {
  const std::vector<Criterion> criteria = judge(clean(), bf16_model(), {}, {});
  const std::vector<std::string> names = {"G0 pattern", "G0 unwritten", "G0 guards", "G0 determinism", "G1 bound",
                                          "G2 rms",     "G3 slope",     "G4 flips",  "G4 element"};
  ASSERT_EQ(criteria.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(criteria[i].name, names[i]);
    EXPECT_TRUE(criteria[i].ok) << names[i];
    EXPECT_FALSE(criteria[i].source.empty()) << names[i];
  }
  EXPECT_LT(tightest(criteria), 1);
}

TEST(Judge, pattern) {
  metric::Statistics s = clean();
  s.nonfinite_mismatch = 1;
  EXPECT_FALSE(holds("G0 pattern", s));
  s = clean();
  s.poison = 1;
  EXPECT_FALSE(holds("G0 unwritten", s));
  s = clean();
  s.order_dependent = 5;
  EXPECT_TRUE(holds("G0 pattern", s));
}

TEST(Judge, criteria_tell_what_they_are_about) {
  using About = Criterion::About;
  for (const Criterion& criterion : judge(clean(), bf16_model(), {}, {})) {
    // Of a 16-bit output: its own rounding is most of what single elements may be off.
    const bool of_elements = criterion.name == "G1 bound" || criterion.name == "G4 element";
    const About about = criterion.name == "G0 pattern"       ? About::pattern
                        : criterion.name == "G0 unwritten"   ? About::unwritten
                        : criterion.name == "G0 determinism" ? About::repetition
                        : criterion.name.starts_with("G0")   ? About::conduct
                        : of_elements                        ? About::rounding
                                                             : About::errors;
    EXPECT_EQ(criterion.about, about) << criterion.name;
  }
}

TEST(Judge, facts) {
  EXPECT_FALSE(holds("G0 guards", clean(), bf16_model(), {.guards_intact = false}));
  EXPECT_FALSE(holds("G0 guards", clean(), bf16_model(), {.inputs_intact = false}));
  EXPECT_FALSE(holds("G0 determinism", clean(), bf16_model(), {.deterministic = false}));
}

TEST(Judge, class) {
  using enum model::PrecisionClass;
  const auto facts = [](model::PrecisionClass expected, model::PrecisionClass observed) {
    return RunFacts{.expected = expected, .observed = observed};
  };
  EXPECT_FALSE(judged("class", clean(), bf16_model(), facts(fp32, unknown))) << "not classified";
  EXPECT_FALSE(judged("class", clean(), bf16_model(), facts(native, native)));
  EXPECT_TRUE(holds("class", clean(), bf16_model(), facts(fp32, fp32)));
  EXPECT_FALSE(holds("class", clean(), bf16_model(), facts(fp32, tf32_rne)));
  EXPECT_TRUE(holds("class", clean(), bf16_model(), facts(tf32_rne, tf32_rne)));
  EXPECT_TRUE(holds("class", clean(), bf16_model(), facts(tf32_rne, fp32))) << "TF32 is permitted, not demanded";
  EXPECT_FALSE(holds("class", clean(), bf16_model(), facts(tf32_rne, tf32_truncated)));
  EXPECT_FALSE(holds("class", clean(), bf16_model(), facts(tf32_rne, bf16_inputs)));
}

TEST(Judge, bound) {
  metric::Statistics s = clean();
  s.max_over_bound = 1;
  EXPECT_TRUE(holds("G1 bound", s));
  s.max_over_bound = std::nextafter(1.0, 2.0);
  EXPECT_FALSE(holds("G1 bound", s));
  s.max_over_bound = kNan;
  EXPECT_FALSE(holds("G1 bound", s)) << "NaN never passes";
}

TEST(Judge, spread_limits_and_smallest_sizes) {
  metric::Statistics s = clean();
  model::ErrorModel m = fp32_model();
  for (const double kappa : {3.0, 4.0}) {
    m.kappa = kappa;
    s = clean();
    s.z_rms = kappa;
    s.z_q999 = 3.3 * kappa;
    s.z_max = lambda_of(s.elements) * kappa;
    EXPECT_TRUE(holds("G2 rms", s, m));
    EXPECT_TRUE(holds("G2 q999", s, m));
    EXPECT_TRUE(holds("G2 max", s, m));
    s.z_rms *= 1.0001;
    s.z_q999 *= 1.0001;
    s.z_max *= 1.0001;
    EXPECT_FALSE(holds("G2 rms", s, m));
    EXPECT_FALSE(holds("G2 q999", s, m));
    EXPECT_FALSE(holds("G2 max", s, m));
  }
  s.elements = s.finite = 32;
  EXPECT_TRUE(judged("G2 rms", s, m));
  EXPECT_FALSE(judged("G2 q999", s, m));
  s.elements = s.finite = 31;
  EXPECT_FALSE(judged("G2 rms", s, m));
  EXPECT_TRUE(judged("G2 max", s, m));
  s.finite = 1000;
  EXPECT_TRUE(judged("G2 q999", s, m));
}

TEST(Judge, single_errors_stand_out_of_the_whole_by_two_at_most) {
  metric::Statistics s = clean();
  model::ErrorModel m = fp32_model();
  m.kappa = 4;
  const double lambda = lambda_of(s.elements);
  s.z_max = 2 * lambda;
  EXPECT_TRUE(holds("G2 max", s, m));
  s.z_max = 2.01 * lambda;
  EXPECT_FALSE(holds("G2 max", s, m)) << "kappa is for the size of all errors";
  s.z_rms = 1.5;
  EXPECT_TRUE(holds("G2 max", s, m)) << "they are all larger";
  s.z_rms = 3;
  s.z_max = 4.01 * lambda;
  EXPECT_FALSE(holds("G2 max", s, m));
}

TEST(Judge, quantiles_of_short_outputs_count_where_arithmetic_errors_are_as_large_as_the_rounding) {
  metric::Statistics s = clean();
  EXPECT_FALSE(judged("G2 q999", s));
  EXPECT_FALSE(judged("G2 max", s)) << "that is G4's";
  s.flips[2].count -= 1000;
  EXPECT_TRUE(judged("G2 q999", s));
  s.zeros_got = 1000;
  EXPECT_FALSE(judged("G2 q999", s)) << "zeros are not rounded";
}

TEST(Judge, flips) {
  metric::Statistics s = clean();
  metric::Flips& flips = s.flips[2];
  flips.found = 30 + 30 + 5;  // allowed, sqrt(2 * 30 * 15), 15 / 3
  EXPECT_TRUE(holds("G4 flips", s));
  ++flips.found;
  EXPECT_FALSE(holds("G4 flips", s));
  EXPECT_TRUE(holds("G4 element", s)) << "each of them is within reach of a boundary";
  flips.copies = 4;  // 30 + sqrt(2 * 4 * 30 * 15) + 4 * 5
  flips.found = 110;
  EXPECT_TRUE(holds("G4 flips", s)) << "four at a time";
  ++flips.found;
  EXPECT_FALSE(holds("G4 flips", s));
  flips = {.width = 1, .count = 5, .found = 5};
  EXPECT_FALSE(judged("G4 flips", s)) << "as many flips as chance may cause";
  EXPECT_TRUE(judged("G4 element", s));
}

TEST(Judge, flips_are_judged_where_they_tell_most) {
  metric::Statistics s = clean();
  s.flips[2] = {.width = 1, .count = 10'000, .found = 3000, .allowed = 3000};
  s.flips[0] = {.width = 0.01, .count = 1000, .found = 12, .allowed = 1};
  EXPECT_FALSE(holds("G4 flips", s)) << "of a thousand elements that hardly any error moves, twelve are moved";
  s.flips[0].found = 5;
  EXPECT_TRUE(holds("G4 flips", s));
}

TEST(Judge, rounding_element) {
  metric::Statistics s = clean();
  s.max_over_half_ulp = 1;
  EXPECT_TRUE(holds("G4 element", s));
  s.max_over_half_ulp = 1.0001;
  EXPECT_FALSE(holds("G4 element", s));
  model::ErrorModel wide = bf16_model();
  wide.output = core::Dtype::fp32;
  EXPECT_FALSE(judged("G4 element", s, wide));
}

TEST(Judge, groups) {
  metric::Statistics s = clean();
  EXPECT_FALSE(judged("homogeneity", s)) << "nothing is known";
  s.groups.row = {.count = 100, .index = 7, .elements = 1000, .excess = -500, .unit = 16};
  s.groups.column.unit = s.groups.matrix.unit = 16;
  s.groups.tile = {.count = 4, .index = 2, .elements = 4096, .excess = -700, .unit = 16};
  EXPECT_TRUE(holds("homogeneity", s));
  const double most = 16 * std::log(2 * 104 / 1e-6);
  s.groups.row.excess = most * 0.999;
  EXPECT_TRUE(holds("homogeneity", s));
  s.groups.row.excess = most * 1.001;
  EXPECT_FALSE(holds("homogeneity", s));
  EXPECT_EQ(find(judge(s, bf16_model(), {}, {}), "homogeneity")->source, "row 7 of 100");
  s.groups.row.copies = 2;
  EXPECT_TRUE(holds("homogeneity", s)) << "half as many independent errors";
  s.groups.row.excess = kNan;
  EXPECT_FALSE(holds("homogeneity", s)) << "NaN never passes";
}

TEST(Judge, lattice) {
  metric::Statistics s = clean();
  EXPECT_FALSE(judged("lattice", s)) << "not asked";
  s.spread_ulps = 0x1p22;
  s.lattices[1] = {.bits = 13, .count = 1000, .found = 0, .expected = 10};
  const double most = 10 + std::sqrt(2 * 10 * 15.0) + 5;
  s.lattices[1].found = static_cast<std::uint64_t>(most);
  EXPECT_TRUE(holds("lattice", s));
  ++s.lattices[1].found;
  EXPECT_FALSE(holds("lattice", s));
  s.lattices[0] = {.bits = 10, .count = 1000, .found = 50, .expected = 100};
  EXPECT_NE(find(judge(s, bf16_model(), {}, {}), "lattice")->source.find("33 of 1000 numbers end in 13 zeros"),
            std::string::npos)
      << "the one that is closest to its limit";
  s.copies = 100;
  EXPECT_TRUE(holds("lattice", s)) << "ten independent elements";
  s.copies = 1000;
  EXPECT_FALSE(judged("lattice", s)) << "one";
  s.copies = 1;
  s.lattices = {};
  s.lattices[2] = {.bits = 16, .count = 5, .found = 5, .expected = 0};
  EXPECT_FALSE(judged("lattice", s)) << "too few to tell";
  s.lattices[2].count = s.lattices[2].found = 6;
  EXPECT_FALSE(holds("lattice", s));
  s.spread_ulps = 0x1p19;
  EXPECT_FALSE(judged("lattice", s)) << "numbers within eight steps of 2^16 ulps may all be on them";
}

TEST(Judge, exact_leg_allows_no_mismatch) {
  model::ErrorModel m = bf16_model();
  m.exact = true;
  metric::Statistics s = clean();
  EXPECT_TRUE(holds("exact", s, m));
  s.exact_mismatch = 1;
  EXPECT_FALSE(holds("exact", s, m));
  EXPECT_FALSE(judged("G1 bound", s, m));
  s.exact_mismatch = 0;
  s.poison = 1;
  EXPECT_FALSE(holds("G0 unwritten", s, m));
}

TEST(Judge, plans_may_add_gates) {
  metric::Statistics s = clean();
  s.max_ulp = 2;
  s.arithmetic.rel_l2 = 1e-3;
  plan::ToleranceSpec extra{.max_ulp = 2, .rel_l2 = 1e-3};
  EXPECT_TRUE(holds("max_ulp", s, bf16_model(), {}, extra));
  EXPECT_TRUE(holds("rel_l2", s, bf16_model(), {}, extra));
  extra = {.max_ulp = 1.9, .rel_l2 = 0.9e-3};
  EXPECT_FALSE(holds("max_ulp", s, bf16_model(), {}, extra));
  EXPECT_FALSE(holds("rel_l2", s, bf16_model(), {}, extra));
  extra = {.max_ulp = 10};
  s.nonfinite_mismatch = 1;
  EXPECT_FALSE(holds("max_ulp", s, bf16_model(), {}, extra)) << "NaN is not a small error";
}

TEST(Judge, allclose_says_what_it_is_worth) {
  metric::Statistics s = clean();
  const plan::ToleranceSpec extra{.allclose_rtol = 0.1, .allclose_atol = 1e-9};
  EXPECT_TRUE(holds("allclose", s, bf16_model(), {}, extra));
  s.plan_limit_over_bound = 11;
  EXPECT_NE(find(judge(s, bf16_model(), {}, extra), "allclose")->source.find("11 times the error bound"),
            std::string::npos);
  s.plan_allclose.mismatches = 1;
  EXPECT_FALSE(holds("allclose", s, bf16_model(), {}, extra));
  s = clean();
  s.plan_atol_over_ulp = 0.25;
  const plan::ToleranceSpec absolute{.allclose_atol = 1e-9};
  EXPECT_NE(find(judge(s, bf16_model(), {}, absolute), "allclose")->source.find("0.25 ulp"), std::string::npos);
}

TEST(Tightest, is_the_largest_ratio) {
  EXPECT_EQ(tightest({}), 0);
  EXPECT_EQ(tightest({{"a", 1, 4, true, ""}, {"b", 3, 4, true, ""}}), 0.75);
  EXPECT_EQ(tightest({{"a", 0, 0, true, ""}}), 0);
  EXPECT_EQ(tightest({{"a", 1, 0, false, ""}}), kInf);
  EXPECT_EQ(tightest({{"a", kNan, 1, false, ""}, {"b", 1, 2, true, ""}}), kInf);
  EXPECT_EQ(tightest({{"a", kInf, 1, false, ""}}), kInf);
}

TEST(Lambda, values_of_the_source) {
  EXPECT_NEAR(lambda_of(1'000'000), 7.5, 0.05);  // tensor_core_numerics section 5.2
  EXPECT_NEAR(lambda_of(1), std::sqrt(2 * std::log(2e6)), 1e-12);
  EXPECT_TRUE(std::isfinite(lambda_of(0)));
}

}  // namespace
}  // namespace numcheck::tolerance
