// Bits of outputs show declared roundings, however k is cut and whatever comes first, and show nothing that is not there.
#include "reference/gemm_replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "gemm_problem.hpp"
#include "reference/gemm_slices.hpp"

namespace numcheck::reference::testing {
namespace {

using core::Dtype;

double rn(double value) {
  return core::round_to(value, Dtype::bf16);
}

op::GemmParams shape(std::int64_t k) {
  op::GemmParams p;
  p.m = 48;
  p.n = 40;
  p.k = k;
  return p;
}

op::Replay replay(GemmProblem problem, const std::vector<double>& d, const op::EarlyRounding& rounding,
                  Dtype dtype = Dtype::bf16, std::vector<std::int64_t> farthest = {}, double variance = 0x1p-48) {
  const op::ReferenceRequest request = problem.request();
  return gemm_replay({.params = request.params,
                      .inputs = request.inputs,
                      .dtype = dtype,
                      .stored = [&d](std::size_t index) { return d[index]; },
                      .rounding = rounding,
                      .farthest = std::move(farthest),
                      .variance = [variance](double, double second, double) { return variance * second; }});
}

/// The sum of some products of an element.
double sum(const GemmProblem& problem, std::size_t index, std::int64_t begin, std::int64_t end) {
  const std::int64_t row = static_cast<std::int64_t>(index) / problem.gemm.n;
  const std::int64_t column = static_cast<std::int64_t>(index) % problem.gemm.n;
  double value = 0;
  for (std::int64_t t = begin; t < end; ++t) {
    value += problem.first(0, row, t) * problem.second(0, t, column);
  }
  return problem.gemm.alpha * value;
}

/// What `element` makes of each element.
template <class Element>
std::vector<double> outputs(const GemmProblem& problem, Element element) {
  std::vector<double> d(static_cast<std::size_t>(problem.gemm.m * problem.gemm.n));
  for (std::size_t i = 0; i < d.size(); ++i) {
    d[i] = element(i);
  }
  return d;
}

TEST(GemmSlices, are_cut_in_every_plausible_way_once) {
  const auto ends = [](const Partition& partition) {
    std::vector<std::int64_t> found;
    for (const Slice& slice : partition.slices) {
      found.push_back(slice.back().end);
    }
    return found;
  };
  std::vector<std::vector<std::int64_t>> contiguous;
  for (const Partition& partition : plausible_partitions(300, 4)) {
    std::int64_t size = 0;
    for (const Slice& slice : partition.slices) {
      for (const Range& range : slice) {
        size += range.size();
      }
    }
    EXPECT_EQ(size, 300) << partition.text;
    if (partition.slices.front().size() == 1 && partition.slices.front().front().end > 16) {
      contiguous.push_back(ends(partition));
    }
  }
  EXPECT_EQ(plausible_partitions(1, 4).size(), 1U);
  for (const Partition& partition : plausible_partitions(4096, 33)) {
    EXPECT_GT(partition.slices.size(), 16U) << "half of them would be empty: " << partition.text;
  }
  for (const std::vector<std::int64_t>& wanted : std::vector<std::vector<std::int64_t>>{
           {75, 150, 225, 300}, {128, 256, 300}, {96, 192, 256, 300}, {64, 128, 192, 300}}) {
    EXPECT_EQ(std::ranges::count(contiguous, wanted), 1) << wanted[0] << ' ' << wanted[1];
  }
}

TEST(GemmReplay, shows_slices_in_any_order_and_place) {
  GemmProblem p = noisy(shape(200));
  const op::EarlyRounding three{.slices = 3};
  const auto slice = [&p](std::size_t i, int s) { return sum(p, i, 67 * s, std::min(67 * (s + 1), 200)); };
  const auto stored =
      outputs(p, [&](std::size_t i) { return rn(rn(slice(i, 0)) + rn(slice(i, 1)) + rn(slice(i, 2))); });
  const auto in_place = outputs(p, [&](std::size_t i) { return rn(rn(rn(slice(i, 0)) + slice(i, 1)) + slice(i, 2)); });
  const auto backwards = outputs(p, [&](std::size_t i) { return rn(rn(rn(slice(i, 2)) + slice(i, 1)) + slice(i, 0)); });
  const auto once = outputs(p, [&](std::size_t i) { return rn(sum(p, i, 0, 200)); });
  const auto uneven = outputs(p, [&](std::size_t i) { return rn(rn(sum(p, i, 0, 61)) + rn(sum(p, i, 61, 200))); });
  for (const auto& d : {stored, in_place, backwards}) {
    const op::Replay found = replay(p, d, three);
    EXPECT_TRUE(found.shown) << found.text;
    EXPECT_EQ(found.share, 1) << found.text;
    EXPECT_FALSE(replay(p, d, {.slices = 4}).shown) << "not four of them";
  }
  EXPECT_FALSE(replay(p, once, three).shown);
  EXPECT_FALSE(replay(p, uneven, {.slices = 2}).shown) << "61 products are no stages";
}

TEST(GemmReplay, shows_more_slices_than_k_fills) {
  const GemmProblem p = noisy(shape(1024));
  const auto many = outputs(p, [&p](std::size_t i) {
    double d = 0;
    for (std::int64_t t = 0; t < 1024; t += 8) {
      d += rn(sum(p, i, t, t + 8));
    }
    return rn(d);
  });
  EXPECT_TRUE(replay(p, many, {.slices = 132}).shown);
  EXPECT_TRUE(replay(p, many, {.slices = 128}).shown);
  EXPECT_FALSE(replay(p, many, {.slices = 4}).shown);
}

TEST(GemmReplay, finds_c_before_the_slices_and_alpha_after_them) {
  op::GemmParams params = shape(128);
  params.beta = 0.5;
  GemmProblem p = noisy(params);
  const auto c_first =
      outputs(p, [&](std::size_t i) { return rn(rn(0.5 * p.c[i] + sum(p, i, 0, 64)) + sum(p, i, 64, 128)); });
  EXPECT_TRUE(replay(p, c_first, {.slices = 2}).shown);
  params.alpha = 0.3;
  params.beta = 0;
  p = noisy(params);
  const auto late =
      outputs(p, [&](std::size_t i) { return rn(0.3 * (rn(sum(p, i, 0, 64) / 0.3) + rn(sum(p, i, 64, 128) / 0.3))); });
  const auto early = outputs(p, [&](std::size_t i) { return rn(rn(sum(p, i, 0, 64)) + rn(sum(p, i, 64, 128))); });
  EXPECT_TRUE(replay(p, late, {.slices = 2}).shown);
  EXPECT_TRUE(replay(p, early, {.slices = 2}).shown);
}

// cuBLASLt 13.1 on an H100, algorithm 24 with two slices in place.
TEST(GemmReplay, finds_the_bias_with_the_first_slice) {
  op::GemmParams params = shape(200);
  params.bias = true;
  const GemmProblem p = noisy(params);
  const auto d =
      outputs(p, [&](std::size_t i) { return rn(rn(sum(p, i, 0, 104) + p.bias[i % 40]) + sum(p, i, 104, 200)); });
  const op::Replay found = replay(p, d, {.slices = 2});
  EXPECT_TRUE(found.shown) << found.text;
  EXPECT_NE(found.text.find("bias with the first"), std::string::npos) << found.text;
}

TEST(GemmReplay, sees_through_gelu) {
  op::GemmParams params = shape(64);
  params.epilogue = "gelu";
  params.bias = true;
  params.alpha = 0.25;
  const GemmProblem p = noisy(params);
  const auto bias = [&p](std::size_t i) { return p.bias[i % 40]; };
  const auto gelu = [](double z) { return apply_epilogue(Epilogue::gelu, z); };
  const auto once = outputs(p, [&](std::size_t i) { return rn(gelu(sum(p, i, 0, 64) + bias(i))); });
  const auto twice = outputs(p, [&](std::size_t i) { return rn(gelu(rn(sum(p, i, 0, 64)) + bias(i))); });
  EXPECT_TRUE(replay(p, twice, {.sum = true}).shown);
  EXPECT_FALSE(replay(p, once, {.sum = true}).shown);
  const auto both =
      outputs(p, [&](std::size_t i) { return rn(gelu(rn(rn(sum(p, i, 0, 32)) + rn(sum(p, i, 32, 64))) + bias(i))); });
  EXPECT_TRUE(replay(p, both, {.slices = 2, .sum = true}).shown);
  EXPECT_FALSE(replay(p, both, {.sum = true}).shown);
}

TEST(GemmReplay, bounds_what_tanh_explains) {
  op::GemmParams params = shape(64);
  params.epilogue = "gelu";
  const GemmProblem p = noisy(params);
  const auto off = [&p](double error) {
    return outputs(p, [&p, error](std::size_t i) {
      const double z = sum(p, i, 0, 64);
      return core::round_to(apply_epilogue(Epilogue::gelu, z) + z / 2 * error, Dtype::fp32);
    });
  };
  EXPECT_TRUE(replay(p, off(7e-6), {.tanh_error = 8e-6}, Dtype::fp32).shown);
  EXPECT_FALSE(replay(p, off(1.2e-5), {.tanh_error = 8e-6}, Dtype::fp32).shown);
}

TEST(GemmReplay, does_not_take_other_faults_for_slices) {
  const GemmProblem p = noisy(shape(128));
  const auto with = [&p](double factor) {
    return outputs(
        p, [&p, factor](std::size_t i) { return rn(rn(factor * sum(p, i, 0, 64)) + rn(factor * sum(p, i, 64, 128))); });
  };
  EXPECT_TRUE(replay(p, with(1), {.slices = 2}).shown);
  EXPECT_FALSE(replay(p, with(1.0003), {.slices = 2}).shown);
  const auto truncated = outputs(p, [&p](std::size_t i) {
    return core::round_to(sum(p, i, 0, 128), Dtype::bf16, core::Overflow::ieee, core::Rounding::toward_zero);
  });
  EXPECT_FALSE(replay(p, truncated, {.slices = 2}).shown);
  EXPECT_FALSE(replay(p, truncated, {.slices = 32}).shown);
}

TEST(GemmReplay, allows_no_row_that_does_not_fit) {
  const GemmProblem p = noisy(shape(128));
  const auto with_row = [&p](std::size_t wrong, double factor) {
    return outputs(p, [&p, wrong, factor](std::size_t i) {
      const double scale = i / 40 == wrong ? factor : 1;
      return rn(scale * (rn(sum(p, i, 0, 64)) + rn(sum(p, i, 64, 128))));
    });
  };
  EXPECT_TRUE(replay(p, with_row(7, 1), {.slices = 2}).shown);
  const op::Replay found = replay(p, with_row(7, 1.004), {.slices = 2});
  EXPECT_FALSE(found.shown);
  EXPECT_NE(found.text.find("too many of them are of row 7 ("), std::string::npos) << found.text;
}

TEST(GemmReplay, allows_no_element_that_is_further_off_than_slices_make) {
  for (const std::int64_t length : {64, 8}) {
    const GemmProblem p = noisy(shape(1024));
    std::vector<double> d = outputs(p, [&p, length](std::size_t i) {
      double sums = 0;
      for (std::int64_t t = 0; t < 1024; t += length) {
        sums += rn(sum(p, i, t, t + length));
      }
      return rn(sums);
    });
    const op::EarlyRounding slices{.slices = static_cast<int>(1024 / length)};
    const auto largest = std::ranges::max_element(d, {}, [](double value) { return std::abs(value); });
    const auto at = static_cast<std::size_t>(largest - d.begin());
    const double right = d[at];
    const op::Replay clean = replay(p, d, slices);
    EXPECT_TRUE(clean.shown) << clean.text;
    EXPECT_EQ(clean.slices, slices.slices);
    d[at] = right * (1 + 0x1p-7);
    EXPECT_TRUE(replay(p, d, slices).shown) << "a sum may be rounded to the next number";
    d[at] = rn(1.1 * right);
    const op::Replay found = replay(p, d, slices);
    EXPECT_FALSE(found.shown) << found.text;
    EXPECT_FALSE(found.too_few);
    EXPECT_NE(found.text.find("is further off than they make any"), std::string::npos) << found.text;
    EXPECT_FALSE(replay(p, d, {.slices = 1024}).shown) << "nor of any number of slices";
  }
}

TEST(GemmReplay, looks_at_the_farthest_elements_of_large_outputs) {
  op::GemmParams params = shape(64);
  params.m = params.n = 100;
  const GemmProblem p = noisy(params);
  std::vector<double> d = outputs(p, [&p](std::size_t i) { return rn(rn(sum(p, i, 0, 32)) + rn(sum(p, i, 32, 64))); });
  constexpr std::int64_t kUnseen = 5000;  // of which every third is computed again
  d[kUnseen] += 4;
  EXPECT_TRUE(replay(p, d, {.slices = 2}).shown);
  EXPECT_FALSE(replay(p, d, {.slices = 2}, Dtype::bf16, {kUnseen - 1, kUnseen}).shown);
  EXPECT_TRUE(replay(p, d, {.slices = 2}, Dtype::bf16, {kUnseen - 1, kUnseen + 1}).shown);
}

TEST(GemmReplay, counts_elements_of_equal_rows_once) {
  GemmProblem p = noisy(shape(128));
  for (std::size_t i = 128; i < p.a.size(); ++i) {
    p.a[i] = p.a[i - 128];
  }
  std::vector<double> d = outputs(p, [&p](std::size_t i) { return rn(rn(sum(p, i, 0, 64)) + rn(sum(p, i, 64, 128))); });
  const auto found = [&] { return replay(p, d, {.slices = 2}, Dtype::bf16, {}, 0x1p-28); };
  EXPECT_EQ(found().elements, 40U);
  // The column whose sum of slices is closest to the boundary between two numbers crosses it.
  const auto before = [&p](std::size_t j) { return rn(sum(p, j, 0, 64)) + rn(sum(p, j, 64, 128)); };
  const auto off = [&](std::size_t j) { return std::abs(before(j) - d[j]) / core::ulp(before(j), Dtype::bf16); };
  std::size_t closest = 0;
  for (std::size_t j = 1; j < 40; ++j) {
    closest = off(j) > off(closest) ? j : closest;
  }
  const double other = d[closest] + (before(closest) > d[closest] ? 1 : -1) * core::ulp(before(closest), Dtype::bf16);
  for (std::size_t i = closest; i < d.size(); i += 40) {
    d[i] = other;
  }
  EXPECT_TRUE(found().shown) << "a sum that goes otherwise does so in all rows: " << found().text;
  EXPECT_EQ(found().equal, 39U);
  d[closest == 7 ? 8 : 7] *= 1 + 0x1p-7;
  EXPECT_EQ(found().elements, 41U) << "not if other bits were stored";
}

TEST(GemmReplay, does_not_count_a_wrong_row_of_equal_elements_as_one) {
  GemmProblem p = noisy(shape(128));
  p.b.assign(p.b.size(), 0.1);
  std::vector<double> d = outputs(p, [&p](std::size_t i) { return rn(rn(sum(p, i, 0, 64)) + rn(sum(p, i, 64, 128))); });
  EXPECT_TRUE(replay(p, d, {.slices = 2}).shown);
  for (std::size_t i = 7 * 40; i < 8 * 40; ++i) {
    d[i] *= 1 + 0x1p-7;
  }
  EXPECT_FALSE(replay(p, d, {.slices = 2}).shown) << "whose sums leave no doubt";
}

// All products are one number, and so is the error of their sum: whatever bias brings close to a boundary crosses it.
TEST(GemmReplay, lets_sums_with_one_error_cross_boundaries_together) {
  op::GemmParams params = shape(128);
  params.bias = true;
  GemmProblem p = noisy(params);
  p.a.assign(p.a.size(), 0.1);
  p.b.assign(p.b.size(), 0.3);
  const auto off_by = [&p](double error) {
    return outputs(p, [&p, error](std::size_t i) {
      return rn(rn(sum(p, i, 0, 64) * (1 + error) + p.bias[i % 40]) + sum(p, i, 64, 128));
    });
  };
  const op::EarlyRounding rounding{.slices = 2};
  for (const double error : {0.0, 0x1p-13, -0x1p-13}) {
    const op::Replay found = replay(p, off_by(error), rounding, Dtype::bf16, {}, 0x1p-21);
    EXPECT_TRUE(found.shown) << error << ": " << found.text;
  }
}

TEST(GemmReplay, allows_no_row_of_which_a_fifth_does_not_fit) {
  const GemmProblem p = noisy(shape(128));
  std::vector<double> d = outputs(p, [&p](std::size_t i) { return rn(rn(sum(p, i, 0, 64)) + rn(sum(p, i, 64, 128))); });
  for (std::size_t i = 7 * 40; i < 7 * 40 + 8; ++i) {
    d[i] *= 1 + 0x1p-7;
  }
  const op::Replay found = replay(p, d, {.slices = 2});
  EXPECT_FALSE(found.shown);
  EXPECT_NE(found.text.find("too many of them are of row 7 (8 of 40)"), std::string::npos) << found.text;
}

TEST(GemmReplay, explains_no_element_if_roundings_change_none) {
  op::GemmParams params = shape(64);
  params.m = params.n = 100;
  GemmProblem p = noisy(params);
  for (std::vector<double>* operand : {&p.a, &p.b}) {
    for (double& x : *operand) {
      x = x < 0 ? -1 : 1;
    }
  }
  std::vector<double> d = outputs(p, [&p](std::size_t i) { return sum(p, i, 0, 64); });
  constexpr std::int64_t kUnseen = 5000;
  d[kUnseen] += 0.5;
  EXPECT_FALSE(replay(p, d, {.slices = 2}, Dtype::bf16, {kUnseen}).shown);
}

TEST(GemmReplay, leaves_ties_of_gelu_to_fp32) {
  op::GemmParams params = shape(128);
  params.epilogue = "gelu";
  GemmProblem p = noisy(params);
  for (double& x : p.a) {
    x *= 0x1p-20;
  }
  const auto rounded = [](double x) { return core::round_to(x, Dtype::fp16); };
  const auto fp32_gelu = [](float z) {
    return 0.5F * z * (1 + std::tanh(0.7978845608F * (z + 0.044715F * z * z * z)));
  };
  const auto d = outputs(p, [&](std::size_t i) {
    const double z = rounded(sum(p, i, 0, 64)) + rounded(sum(p, i, 64, 128));
    return rounded(static_cast<double>(fp32_gelu(static_cast<float>(z))));
  });
  const op::Replay found = replay(p, d, {.slices = 2}, Dtype::fp16);
  EXPECT_TRUE(found.shown) << found.text;
}

TEST(GemmReplay, is_shown_by_nothing_that_contradicts) {
  op::GemmParams params = shape(0);
  params.bias = true;
  const GemmProblem empty = noisy(params);
  const auto bias = outputs(empty, [&](std::size_t i) { return rn(empty.bias[i % 40]); });
  EXPECT_TRUE(replay(empty, bias, {.slices = 4}).shown) << "nothing contradicts";
  const auto off = outputs(empty, [&](std::size_t i) { return rn(1.01 * empty.bias[i % 40]); });
  EXPECT_FALSE(replay(empty, off, {.slices = 4}).shown);
  const GemmProblem p = noisy(shape(128));
  const auto nan = outputs(p, [](std::size_t) { return std::nan(""); });
  EXPECT_FALSE(replay(p, nan, {.slices = 2}).shown);
}

// What relu makes of NaN is 0 however k is cut: many such elements do not speak for a cut that leaves few others to speak against it.
TEST(GemmReplay, asks_no_element_whose_sum_is_not_finite) {
  op::GemmParams params = shape(300);
  params.epilogue = "relu";
  GemmProblem p = noisy(params);
  for (std::int64_t row = 4; row < params.m; ++row) {
    p.a[static_cast<std::size_t>(row * params.k + 70)] = std::numeric_limits<double>::infinity();
    p.a[static_cast<std::size_t>(row * params.k + 71)] = -std::numeric_limits<double>::infinity();
  }
  const auto d = outputs(p, [&](std::size_t i) {
    const double z = rn(rn(rn(sum(p, i, 0, 128)) + sum(p, i, 128, 256)) + sum(p, i, 256, 300));
    return z > 0 ? z : 0;
  });
  const op::Replay found = replay(p, d, {.slices = 3});
  EXPECT_TRUE(found.shown) << found.text;
  EXPECT_LE(found.elements, 160U);
}

// Of 96 x 96 elements every third is looked at, but for these.
TEST(GemmReplay, looks_at_the_only_finite_elements) {
  op::GemmParams params = shape(32);
  params.m = 96;
  params.n = 96;
  params.epilogue = "gelu";
  const GemmProblem p = noisy(params);
  const auto few = [&](double factor) {
    return outputs(p, [&, factor](std::size_t i) {
      const double y = apply_epilogue(Epilogue::gelu, sum(p, i, 0, 32));
      return i == 100 || i == 2002 ? rn(factor * y) : std::nan("");
    });
  };
  EXPECT_TRUE(replay(p, few(1), {.tanh_error = 0x1p-17}).shown);
  EXPECT_FALSE(replay(p, few(1.01), {.tanh_error = 0x1p-17}).shown);
}

}  // namespace
}  // namespace numcheck::reference::testing
