// FP32 outputs that end in zeros: which elements count, and what chance leaves.
#include <bit>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "problem.hpp"

namespace numcheck::metric {
namespace {

constexpr model::Spacing kFp32{.value = 0x1p-23, .second = 0x1p-22, .magnitude = 0, .absolute = 0, .share = {}};

Problem product(const model::Spacing& spacing = kFp32) {
  Problem p = make_problem(core::Dtype::fp32, {2, 40, 75, 3, 1}, 1e-4, 5);
  p.model.spacing = spacing;
  return p;
}

void round_outputs_to(Problem& p, core::Dtype format) {
  for (std::int64_t i = 0; i < p.port.elements(); ++i) {
    p.set_got(i, core::round_to(p.got_at(i), format));
  }
}

TEST(Lattice, random_results_are_on_it_by_chance) {
  const Statistics s = compare(product().input());
  for (const Lattice& lattice : s.lattices) {
    // Half of the elements are that far from the lattice.
    EXPECT_NEAR(static_cast<double>(lattice.count), 3000, 200) << lattice.bits;
    EXPECT_LE(static_cast<double>(lattice.found), lattice.expected + 6 * std::sqrt(lattice.expected) + 6)
        << lattice.bits;
  }
}

TEST(Lattice, numbers_of_shorter_formats_all_are) {
  struct Row {
    core::Dtype format;
    int most;  ///< zeros that all of its numbers end in
  };
  for (const Row& row : {Row{core::Dtype::tf32, 13}, Row{core::Dtype::fp16, 13}, Row{core::Dtype::bf16, 16}}) {
    Problem p = product();
    round_outputs_to(p, row.format);
    for (const Lattice& lattice : compare(p.input()).lattices) {
      EXPECT_GT(lattice.count, 2500U);
      EXPECT_EQ(lattice.found == lattice.count, lattice.bits <= row.most) << lattice.bits;
    }
  }
}

TEST(Lattice, counts_as_defined) {
  const Problem p = product({.value = 0x1p-16, .second = 0x1p-15, .magnitude = 0x1p-17, .share = {0.1, 0.01, 0}});
  const Statistics s = compare(p.input());
  for (std::size_t l = 0; l < s.lattices.size(); ++l) {
    const int bits = s.lattices[l].bits;
    std::uint64_t count = 0, found = 0;
    double expected = 0;
    for (std::int64_t i = 0; i < p.port.elements(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto y = static_cast<float>(std::abs(p.expected[at]));
      const double unit = std::ldexp(core::ulp(p.expected[at], core::Dtype::fp32), bits);
      const double cells = static_cast<double>(y) / unit;
      const model::Spacing& m = *p.model.spacing;
      const double spacing = m.value * static_cast<double>(y) + m.second * static_cast<double>(p.deviation[at]) +
                             m.magnitude * static_cast<double>(p.magnitude[at]);
      const double probability = spacing / unit + m.share[l];
      if (std::abs(cells - std::nearbyint(cells)) >= 0.25 && probability <= 0.5) {
        ++count;
        expected += probability;
        const auto word = std::bit_cast<std::uint32_t>(static_cast<float>(p.got_at(i)));
        found += (word & ((std::uint32_t{1} << bits) - 1)) == 0 ? 1 : 0;
      }
    }
    EXPECT_NEAR(static_cast<double>(s.lattices[l].count), static_cast<double>(count), 2) << bits;
    EXPECT_NEAR(static_cast<double>(s.lattices[l].found), static_cast<double>(found), 2) << bits;
    EXPECT_NEAR(s.lattices[l].expected, expected, 1) << bits;
  }
}

TEST(Lattice, of_exact_results_nothing_counts) {
  Problem p = product();
  for (std::size_t i = 0; i < p.expected.size(); ++i) {
    p.expected[i] = std::nearbyint(p.expected[i]);
    p.set_got(static_cast<std::int64_t>(i), p.expected[i]);
  }
  for (const Lattice& lattice : compare(p.input()).lattices) {
    EXPECT_EQ(lattice.count, 0U);
  }
}

TEST(Lattice, where_partial_sums_are_much_larger_nothing_counts) {
  for (const Lattice& lattice : compare(product({.magnitude = 0x1p-5}).input()).lattices) {
    EXPECT_EQ(lattice.count, 0U);
  }
}

TEST(Lattice, is_not_asked_without_a_spacing_or_of_shorter_formats) {
  Problem unknown = product();
  unknown.model.spacing.reset();
  Problem narrow = make_problem(core::Dtype::bf16, {1, 40, 75}, 1e-4, 5);
  narrow.model.spacing = kFp32;
  for (const Problem& p : {unknown, narrow}) {
    for (const Lattice& lattice : compare(p.input()).lattices) {
      EXPECT_EQ(lattice.count, 0U);
    }
  }
}

}  // namespace
}  // namespace numcheck::metric
