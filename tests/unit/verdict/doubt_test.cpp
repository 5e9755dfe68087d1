// Why an output that passes proves little.
#include "verdict/doubt.hpp"

#include <gtest/gtest.h>

namespace numcheck::verdict {
namespace {

OutputResult output(std::uint64_t elements, std::uint64_t finite) {
  OutputResult out;
  out.port = "d";
  out.statistics.elements = elements;
  out.statistics.finite = finite;
  return out;
}

TEST(Doubt, of_outputs_that_are_empty_or_mostly_not_finite) {
  EXPECT_NE(doubt_about(output(0, 0), true, {}), "");
  EXPECT_EQ(doubt_about(output(0, 0), false, {}), "") << "only the main output";
  EXPECT_NE(doubt_about(output(10, 4), true, {}), "");
  EXPECT_EQ(doubt_about(output(10, 5), true, {}), "");
}

TEST(Doubt, of_outputs_that_are_mostly_error) {
  OutputResult out = output(100, 100);
  out.statistics.arithmetic.rel_l2 = 0.9;
  EXPECT_EQ(doubt_about(out, true, {}), "") << "judged bit for bit";
  out.criteria.push_back({"G1 bound", 0.5, 1, true, ""});
  EXPECT_EQ(doubt_about(out, true, {}), "") << "no fakes: the device draws";
  out.certificate.fakes = {{"zeros", tolerance::Fake::Outcome::rejected, ""}};
  EXPECT_EQ(doubt_about(out, true, {}),
            "d: a relative L2 error of 0.9 is within the bounds, so the output holds little of the result");
  EXPECT_EQ(doubt_about(out, false, {}), "") << "only the main output";
  out.statistics.arithmetic.rel_l2 = 1e30;
  EXPECT_EQ(doubt_about(out, true, {}), "") << "of one element";
  out.statistics.arithmetic.rel_l2 = 0.4;
  EXPECT_EQ(doubt_about(out, true, {}), "");
}

TEST(Doubt, of_outputs_of_which_too_little_is_judged) {
  OutputResult out = output(1000, 1000);
  out.statistics.undetermined = 10;
  EXPECT_EQ(doubt_about(out, true, {}), "");
  out.statistics.unknown = 1;
  EXPECT_EQ(
      doubt_about(out, false, {}),
      "d: only 98.9 % of the elements are judged, less than 99 % (1: the bound of their error is unknown; 10: numbers "
      "as large as any of the output are within the bound of their error)");
  EXPECT_EQ(doubt_about(out, true, {.min_judged = 0.98}), "");
  OutputResult amax = output(1, 1);
  amax.statistics.unknown = 1;
  EXPECT_EQ(doubt_about(amax, false, {}), "d, a single number, cannot be judged: the bound of its error is unknown");
}

TEST(Doubt, of_cases_whose_fakes_were_all_dropped) {
  using Outcome = tolerance::Fake::Outcome;
  std::vector<OutputResult> outputs = {output(10, 10)};
  EXPECT_EQ(doubt_about_fakes(outputs), "") << "no fakes: judged by gates of its own";
  outputs[0].certificate.fakes = {{"zeros", Outcome::dropped, ""}, {"nan", Outcome::rejected, ""}};
  EXPECT_NE(doubt_about_fakes(outputs), "") << "NaN can always be told";
  outputs[0].certificate.fakes[0].outcome = Outcome::rejected;
  EXPECT_EQ(doubt_about_fakes(outputs), "");
}

TEST(Doubt, of_a_single_number_that_any_other_might_be) {
  using Outcome = tolerance::Fake::Outcome;
  OutputResult single = output(1, 1);
  EXPECT_EQ(doubt_about(single, true, {}), "") << "no fakes: judged by gates of its own";
  single.certificate.fakes = {
      {"zeros", Outcome::accepted, ""}, {"nan", Outcome::rejected, ""}, {"infinity", Outcome::rejected, ""}};
  EXPECT_EQ(doubt_about(single, true, {}),
            "d: no other number could be told from this single one, so passing proves nothing");
  EXPECT_EQ(doubt_about(single, false, {}), "") << "only the main output";
  EXPECT_EQ(doubt_about(single, true, {.min_judged = 0.0}), "") << "the plan knows";
  single.certificate.fakes[0].outcome = Outcome::rejected;
  EXPECT_EQ(doubt_about(single, true, {}), "");
  OutputResult two = output(2, 2);
  two.certificate.fakes = {{"zeros", Outcome::accepted, ""}};
  EXPECT_EQ(doubt_about(two, true, {}), "") << "of more numbers, the certificate says it";
}

TEST(Doubt, of_a_precision_that_nothing_explains) {
  RunResult run;
  run.expected_class = model::PrecisionClass::tf32_rne;
  run.run.observed = model::PrecisionClass::tf32_truncated;
  EXPECT_EQ(doubt_about_class(run), "") << "another one is a failure of its own";
  run.run.observed = model::PrecisionClass::unknown;
  EXPECT_NE(doubt_about_class(run), "");
  run.expected_class = model::PrecisionClass::native;
  EXPECT_EQ(doubt_about_class(run), "") << "nothing was asked";
}

}  // namespace
}  // namespace numcheck::verdict
