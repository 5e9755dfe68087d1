#include "diagnose/crop.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "op/gemm.hpp"

namespace numcheck::diagnose {
namespace {

constexpr std::int64_t kRows = 300, kCols = 200, kTerms = 3;

/// Elements that say where they are: 1000 row + column.
prepare::SharedDoubles places(std::int64_t rows, std::int64_t cols) {
  auto values = std::make_shared<core::Buffer<double>>(static_cast<std::size_t>(rows * cols));
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    (*values)[static_cast<std::size_t>(i)] = static_cast<double>(1000 * (i / cols) + i % cols);
  }
  return values;
}

Subject product(bool trans_a) {
  op::GemmParams p;
  p.m = kRows;
  p.n = kCols;
  p.k = kTerms;
  p.trans_a = trans_a;
  p.bias = true;
  Subject subject;
  subject.c.op = &op::gemm();
  subject.c.mode = op::find_mode("fp32");
  subject.c.params = op::to_params(p);
  subject.inputs.set("a", trans_a ? places(kTerms, kRows) : places(kRows, kTerms));
  subject.inputs.set("b", places(kTerms, kCols));
  subject.inputs.set("bias", places(1, kCols));
  auto bytes = std::make_shared<core::Buffer<std::byte>>(static_cast<std::size_t>(kRows * kCols) * sizeof(float));
  core::encode(places(kRows, kCols)->span(), core::Dtype::fp32, bytes->span());
  subject.outputs.emplace("d", bytes);
  return subject;
}

TEST(Cropped, holds_the_lines_that_have_most_wrong_elements_with_what_belongs_to_them) {
  for (const bool trans_a : {false, true}) {
    const Subject subject = product(trans_a);
    std::vector<std::uint8_t> wrong(static_cast<std::size_t>(kRows * kCols));
    for (std::int64_t col = 0; col < kCols; ++col) {
      wrong[static_cast<std::size_t>(277 * kCols + col)] = 1;
    }
    const std::optional<Subject> part = cropped(subject, wrong);
    ASSERT_TRUE(part.has_value());
    const auto p = op::from_params<op::GemmParams>(part->c.params);
    EXPECT_LT(p.m, kRows);
    EXPECT_EQ(p.k, kTerms);
    const std::vector<op::Port> ports = part->c.op->ports(part->c.params, *part->c.mode);
    const prepare::SharedDoubles a = part->inputs.of(op::port_named(ports, "a"));
    const prepare::SharedDoubles b = part->inputs.of(op::port_named(ports, "b"));
    const prepare::SharedDoubles bias = part->inputs.of(op::port_named(ports, "bias"));
    const core::Buffer<double> d = delivered_numbers(*part, "d");
    bool has_wrong_row = false;
    for (std::int64_t i = 0; i < p.m; ++i) {
      const double row = std::floor(d[static_cast<std::size_t>(i * p.n)] / 1000);
      has_wrong_row = has_wrong_row || row == 277;
      // Term 1 of that row.
      EXPECT_EQ((*a)[static_cast<std::size_t>(trans_a ? p.m + i : i * kTerms + 1)],
                trans_a ? 1000 + row : 1000 * row + 1);
    }
    EXPECT_TRUE(has_wrong_row);
    for (std::int64_t j = 0; j < p.n; ++j) {
      const double col = std::fmod(d[static_cast<std::size_t>(j)], 1000);
      EXPECT_EQ((*b)[static_cast<std::size_t>(p.n + j)], 1000 + col);
      EXPECT_EQ((*bias)[static_cast<std::size_t>(j)], col);
    }
  }
}

TEST(Cropped, leaves_small_products_and_other_ops_as_they_are) {
  Subject subject = product(false);
  EXPECT_FALSE(cropped(subject, {}).has_value());
  op::GemmParams small;
  small.m = small.n = small.k = 8;
  subject.c.params = op::to_params(small);
  EXPECT_FALSE(cropped(subject, std::vector<std::uint8_t>(64)).has_value());
}

}  // namespace
}  // namespace numcheck::diagnose
