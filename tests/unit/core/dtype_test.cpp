#include "core/dtype.hpp"

#include <cfloat>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace numcheck::test {
namespace {

using core::Dtype;

TEST(DtypeTable, every_row_is_consistent) {
  std::size_t position = 0;
  for (const core::DtypeInfo& info : core::all_dtypes()) {
    EXPECT_EQ(static_cast<std::size_t>(info.dtype), position++);
    EXPECT_EQ(&core::dtype_info(info.dtype), &info);
    EXPECT_EQ(core::parse_dtype(info.name), info.dtype);
    EXPECT_EQ(info.unit_roundoff, std::ldexp(1.0, -info.fraction_bits - 1)) << info.name;
    EXPECT_EQ(info.min_subnormal, std::ldexp(1.0, info.emin - info.fraction_bits)) << info.name;
    EXPECT_EQ(info.max_finite, std::trunc(info.max_finite / core::ulp(info.max_finite, info.dtype)) *
                                   core::ulp(info.max_finite, info.dtype))
        << info.name;
  }
  EXPECT_EQ(position, 11U);
}

TEST(DtypeTable, published_constants) {
  EXPECT_EQ(core::dtype_info(Dtype::fp64).max_finite, DBL_MAX);
  EXPECT_EQ(core::dtype_info(Dtype::fp64).min_subnormal, DBL_TRUE_MIN);
  EXPECT_EQ(core::dtype_info(Dtype::fp32).max_finite, FLT_MAX);
  EXPECT_EQ(core::dtype_info(Dtype::fp32).min_subnormal, FLT_TRUE_MIN);
  EXPECT_EQ(core::dtype_info(Dtype::bf16).max_finite, 0x1.fep127);
  EXPECT_EQ(core::dtype_info(Dtype::fp16).max_finite, 65504);
  EXPECT_EQ(core::dtype_info(Dtype::fp8_e4m3).max_finite, 448);
  EXPECT_EQ(core::dtype_info(Dtype::fp8_e4m3).min_subnormal, 0x1p-9);
  EXPECT_EQ(core::dtype_info(Dtype::fp8_e5m2).max_finite, 57344);
  EXPECT_EQ(core::dtype_info(Dtype::fp4_e2m1).max_finite, 6);
  EXPECT_EQ(core::dtype_info(Dtype::fp4_e2m1).min_subnormal, 0.5);
}

TEST(ParseDtype, unknown_names_are_nothing) {
  for (const char* name : {"", "bf61", "FP32", "fp8", "fp32 "}) {
    EXPECT_FALSE(core::parse_dtype(name).has_value()) << name;
  }
}

TEST(Ulp, follows_the_binade) {
  EXPECT_EQ(core::ulp(1, Dtype::fp32), FLT_EPSILON);
  EXPECT_EQ(core::ulp(-1.999, Dtype::bf16), 0x1p-7);
  EXPECT_EQ(core::ulp(2, Dtype::bf16), 0x1p-6);
  EXPECT_EQ(core::ulp(std::nextafter(2.0, 0.0), Dtype::bf16), 0x1p-7);
  EXPECT_EQ(core::ulp(0, Dtype::fp16), 0x1p-24);
  EXPECT_EQ(core::ulp(0x1p-20, Dtype::fp16), 0x1p-24);
  EXPECT_EQ(core::ulp(DBL_TRUE_MIN, Dtype::fp32), FLT_TRUE_MIN);
  EXPECT_EQ(core::ulp(DBL_TRUE_MIN, Dtype::fp64), DBL_TRUE_MIN);
  EXPECT_EQ(core::ulp(0, Dtype::e8m0), 0x1p-127);
}

TEST(Ulp, keeps_the_top_binades_spacing_beyond_it) {
  EXPECT_EQ(core::ulp(448, Dtype::fp8_e4m3), 32);
  EXPECT_EQ(core::ulp(600, Dtype::fp8_e4m3), 32);
  EXPECT_EQ(core::ulp(std::numeric_limits<double>::infinity(), Dtype::fp32), 0x1p104);
  EXPECT_TRUE(std::isnan(core::ulp(std::numeric_limits<double>::quiet_NaN(), Dtype::fp32)));
}

}  // namespace
}  // namespace numcheck::test
