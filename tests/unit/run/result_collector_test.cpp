// What is told of a run's progress.
#include "run/result_collector.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "copy.hpp"

namespace numcheck::run::copy {
namespace {

class Shares : public ::testing::Test {
 protected:
  Shares() {
    options_.on_progress = [this](const Progress& progress) { shares_.push_back(progress.share); };
  }
  void finish(ResultCollector& collector, std::size_t index) {
    verdict::CaseResult result;
    result.c = &cases_[index];
    result.status = verdict::Status::pass;
    collector.finish(index, result, false);
  }

  std::vector<plan::Case> cases_ = {make_case(50, "fp32"), make_case(51, "fp32"), make_case(10'000'000, "fp32")};
  PipelineOptions options_;
  std::vector<double> shares_;
};

TEST_F(Shares, are_of_the_predicted_work_and_not_of_the_number_of_cases) {
  ResultCollector collector(cases_, options_);
  EXPECT_EQ(collector.restore({}).size(), 3U);
  for (const std::size_t index : {0, 1, 2}) {
    finish(collector, index);
  }
  ASSERT_EQ(shares_.size(), 3U);
  EXPECT_LT(shares_[1], 0.1) << "two cases of three, which take hardly any time";
  EXPECT_DOUBLE_EQ(shares_[2], 1);
}

TEST_F(Shares, leave_out_what_an_earlier_run_finished) {
  ResultCollector collector(cases_, options_);
  const nlohmann::json record = {{"status", "pass"}};
  EXPECT_EQ(collector.restore({{cases_[2].digest, record}}), (std::vector<std::size_t>{0, 1}));
  finish(collector, 0);
  ASSERT_EQ(shares_.size(), 1U);
  EXPECT_NEAR(shares_[0], 0.5, 0.01) << "one of two that are left, although the third took longest";
}

}  // namespace
}  // namespace numcheck::run::copy
