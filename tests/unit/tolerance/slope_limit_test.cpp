// What gate G3 asks of products beside addends.
#include "tolerance/slope_limit.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace numcheck::tolerance {
namespace {

/// A product with errors of up to -3e-6 of itself, whose terms are far larger than what is left of them.
model::ErrorModel product() {
  model::ErrorModel model;
  model.slope_low = -2e-6;
  model.slope_second = 3e-6;
  model.var_second = 1e-16;
  model.slope_addend = 1;
  return model;
}

metric::Statistics statistics(double slope, double addend) {
  metric::Statistics s;
  s.elements = s.finite = 10'000;
  s.signal = 1e14;  // the product may be sqrt(1e2) times as large as the output
  s.slope_clusters = 100;
  s.slope = slope;
  s.addend = addend;
  return s;
}

TEST(SlopeLimit, small_addends_leave_the_side_of_the_product_s_errors) {
  const double up = *slope_limit(statistics(1e-5, 0.25), product());
  EXPECT_GE(up, 0.75e-6);
  EXPECT_LT(up, 1e-6);
  const double down = *slope_limit(statistics(-1e-5, 0.25), product());
  EXPECT_GE(down, 3.75e-6);
  EXPECT_LT(down, 4e-6);
}

TEST(SlopeLimit, large_addends_ask_no_less_than_the_terms_do) {
  for (const double slope : {1e-5, -1e-5}) {
    const double limit = *slope_limit(statistics(slope, 1e6), product());
    EXPECT_GE(limit, 3e-5);
    EXPECT_LT(limit, 3.1e-5);
  }
}

TEST(SlopeLimit, addends_that_are_not_known_may_be_large) {
  model::ErrorModel model = product();
  model.slope_addend = std::numeric_limits<double>::infinity();
  EXPECT_GE(*slope_limit(statistics(1e-5, 0), model), 3e-5);
}

TEST(SlopeLimit, of_a_product_alone_is_one_sided) {
  model::ErrorModel model = product();
  model.slope_second = 0;
  EXPECT_LT(*slope_limit(statistics(1e-5, 0), model), 1e-7);
  EXPECT_GE(*slope_limit(statistics(-1e-5, 0), model), 3e-6);
}

}  // namespace
}  // namespace numcheck::tolerance
