// Swizzled scales against their definition, byte by byte, and against what the tiles of matrix instructions are documented to be.
#include "op/swizzle_scales.hpp"

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using Numbers = std::vector<double>;

op::SwizzleScalesParams params_of(std::int64_t rows, std::int64_t cols, const char* recipe, const char* layout) {
  op::SwizzleScalesParams p;
  p.rows = rows;
  p.cols = cols;
  p.recipe = recipe;
  p.layout = layout;
  return p;
}

/// The swizzled bytes of scales 1, 2, 3, ... in the order in which they are stored.
Numbers swizzled(const op::SwizzleScalesParams& p) {
  Numbers scales(static_cast<std::size_t>(p.lines() * p.blocks()));
  std::iota(scales.begin(), scales.end(), 1);
  op::ReferenceRequest request;
  const op::Params params = op::to_params(p);
  request.params = &params;
  request.inputs.push_back({.port = "scales", .data = scales.data(), .cols = static_cast<std::int64_t>(scales.size())});
  const op::Values values = swizzle_scales_reference().values(request);
  const auto got = values.outputs.front().value.span();
  return {got.begin(), got.end()};
}

TEST(SwizzleScales, the_first_bytes_of_a_tile) {
  const Numbers bytes = swizzled(params_of(128, 128, "mxfp8", "rowwise"));
  ASSERT_EQ(bytes.size(), 512U);
  const auto scale = [](int line, int block) { return 4 * line + block + 1; };
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(bytes[i], scale(0, i)) << "the four scales of line 0";
    EXPECT_EQ(bytes[4 + i], scale(32, i)) << "then those of line 32,";
    EXPECT_EQ(bytes[12 + i], scale(96, i)) << "of 64 and 96,";
    EXPECT_EQ(bytes[16 + i], scale(1, i)) << "and of line 1";
  }
  EXPECT_EQ(bytes[511], scale(127, 3));
}

TEST(SwizzleScales, tiles_of_the_same_lines_follow_one_another) {
  const Numbers bytes = swizzled(params_of(256, 256, "mxfp8", "rowwise"));
  ASSERT_EQ(bytes.size(), 2048U);
  EXPECT_EQ(bytes[0], 1);
  EXPECT_EQ(bytes[512], 5) << "block 4 of line 0";
  EXPECT_EQ(bytes[1024], 8 * 128 + 1) << "block 0 of line 128";
}

TEST(SwizzleScales, padding_is_zero) {
  const Numbers bytes = swizzled(params_of(33, 160, "mxfp8", "rowwise"));
  ASSERT_EQ(bytes.size(), 1024U);
  std::size_t zeros = 0;
  for (const double byte : bytes) {
    zeros += byte == 0 ? 1 : 0;
  }
  EXPECT_EQ(zeros, 1024U - 33 * 5);
  EXPECT_EQ(bytes[4], 32 * 5 + 1) << "line 32";
  EXPECT_EQ(bytes[8], 0) << "line 64";
  EXPECT_EQ(bytes[512], 5) << "block 4";
  EXPECT_EQ(bytes[513], 0) << "block 5";
  EXPECT_TRUE(swizzled(params_of(0, 32, "mxfp8", "rowwise")).empty());
  EXPECT_TRUE(swizzled(params_of(32, 0, "mxfp8", "rowwise")).empty());
}

/// Column-wise MXFP8 scales are stored block by block, NVFP4's line by line.
TEST(SwizzleScales, of_columns_are_those_of_rows_of_the_transpose) {
  const Numbers columns = swizzled(params_of(64, 40, "mxfp8", "columnwise"));
  EXPECT_EQ(columns[0], 1) << "block 0 of column 0";
  EXPECT_EQ(columns[1], 41) << "block 1";
  EXPECT_EQ(columns[4], 33) << "column 32";
  EXPECT_EQ(swizzled(params_of(64, 40, "nvfp4", "columnwise")), swizzled(params_of(40, 64, "nvfp4", "rowwise")));
}

TEST(SwizzleScales, lines_must_be_whole_blocks) {
  const op::Mode& mode = *op::find_mode("fp32");
  const auto mistakes = [&mode](const op::SwizzleScalesParams& p) {
    return op::swizzle_scales().check(op::to_params(p), mode).size();
  };
  EXPECT_EQ(mistakes(params_of(5, 48, "nvfp4", "rowwise")), 0U);
  EXPECT_EQ(mistakes(params_of(5, 48, "mxfp8", "rowwise")), 1U);
  EXPECT_EQ(mistakes(params_of(48, 5, "mxfp8", "columnwise")), 1U);
  EXPECT_EQ(mistakes(params_of(1 << 24, 1 << 24, "mxfp8", "rowwise")), 1U);
}

/// Of any distribution, neighbouring draws have different bytes.
TEST(SwizzleScales, bytes_follow_from_all_bits_of_a_draw) {
  op::DeriveRequest request;
  Numbers draws = {1, 1.5, 2, -2, 0.1, static_cast<double>(0.1F), 1e-30, 4};
  swizzle_scales_reference().derive(request, draws);
  for (std::size_t i = 1; i < draws.size(); ++i) {
    EXPECT_NE(draws[i], draws[i - 1]) << i;
    EXPECT_GE(draws[i], 0);
    EXPECT_LE(draws[i], 255);
  }
}

}  // namespace
}  // namespace numcheck::reference
