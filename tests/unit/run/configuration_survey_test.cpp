// Which cases a survey of kernel configurations keeps, also when questions fail.
#include "run/configuration_survey.hpp"

#include <gtest/gtest.h>

#include "copy.hpp"

namespace numcheck::run {
namespace {

/// The tag of a case is the answer to its question: "a b": configurations a and b.
class Answering final : public worker::Executor {
 public:
  const machine::Device& device() const override { return device_; }
  std::vector<std::pair<std::string, std::string>> libraries() const override { return {}; }
  worker::Support supports(const plan::Case& c, const worker::ExecuteOptions& options) override {
    EXPECT_TRUE(options.configurations);
    if (c.tags.front() == "unsupported") {
      return {false, "no such thing"};
    }
    if (c.tags.front() == "throws") {
      throw std::runtime_error("a question that fails");
    }
    return {true, "", {c.tags.begin() + 1, c.tags.end()}};
  }
  worker::Outcome execute(const plan::Case&, std::span<const worker::HostPort>, const worker::ExecuteOptions&,
                          const worker::RunSink&) override {
    ADD_FAILURE() << "a survey runs nothing";
    return {};
  }

 private:
  machine::Device device_{.name = "answers", .sm = 90, .simulated = true};
};

ConfigurationSurvey survey(const std::vector<std::vector<std::string>>& answers, bool only_if_new = true,
                           const std::function<int()>& interrupted = {}) {
  std::vector<plan::Case> cases;
  for (const std::vector<std::string>& answer : answers) {
    cases.push_back(copy::make_case(10 + static_cast<std::int64_t>(cases.size()), "fp32"));
    cases.back().tags = answer;
    cases.back().only_if_new = only_if_new;
  }
  worker::WorkerOptions options = copy::in_process().workers;
  options.factory = [](const machine::DeviceChoice&) { return std::make_unique<Answering>(); };
  return survey_configurations(std::move(cases), options, interrupted);
}

std::vector<std::vector<std::string>> kept(const ConfigurationSurvey& found) {
  std::vector<std::vector<std::string>> tags;
  for (const plan::Case& c : found.cases) {
    tags.push_back(c.tags);
  }
  return tags;
}

using Answers = std::vector<std::vector<std::string>>;

TEST(ConfigurationSurvey, keeps_what_shows_something_new) {
  const auto found = survey({{"yes", "a"}, {"yes", "a"}, {"yes", "a", "b"}, {"yes", "b", "a"}, {"yes", "c"}});
  EXPECT_EQ(kept(found), (Answers{{"yes", "a"}, {"yes", "a", "b"}, {"yes", "c"}}));
  EXPECT_EQ(found.counts.asked, 5U);
  EXPECT_EQ(found.counts.kept, 3U);
  EXPECT_EQ(found.counts.offered, (std::set<std::string>{"a", "b", "c"}));
  EXPECT_EQ(found.configurations.at(found.cases[1].digest), (std::vector<std::string>{"a", "b"}));
}

TEST(ConfigurationSurvey, keeps_every_case_whose_question_failed) {
  EXPECT_EQ(kept(survey({{"throws"}, {"throws"}, {"yes", "a"}})).size(), 3U);
}

TEST(ConfigurationSurvey, keeps_one_unsupported_case_for_each_reason) {
  EXPECT_EQ(kept(survey({{"unsupported"}, {"unsupported"}, {"yes", "a"}})), (Answers{{"unsupported"}, {"yes", "a"}}));
}

TEST(ConfigurationSurvey, keeps_cases_of_backends_that_name_nothing) {
  EXPECT_EQ(kept(survey({{"yes"}, {"yes"}})).size(), 2U);
}

TEST(ConfigurationSurvey, asks_many_in_several_questions) {
  Answers answers;
  for (int i = 0; i < 2500; ++i) {
    answers.push_back({"yes", i < 1200 ? "a" : "b", i == 2400 ? "c" : "a"});
  }
  const auto found = survey(answers);
  EXPECT_EQ(found.counts.asked, 2500U);
  EXPECT_EQ(kept(found), (Answers{{"yes", "a", "a"}, {"yes", "b", "a"}, {"yes", "b", "c"}}));
}

TEST(ConfigurationSurvey, an_interrupt_keeps_what_was_not_answered) {
  const auto found = survey(Answers(5000, {"yes", "a"}), true, [] { return 1; });
  EXPECT_LE(found.counts.asked, 5000U);
  EXPECT_EQ(found.cases.size(), found.counts.kept) << "cases that nobody was asked about are not kept";
}

TEST(ConfigurationSurvey, asks_only_where_it_should_select) {
  const auto found = survey({{"yes", "a"}, {"yes", "a"}}, false);
  EXPECT_EQ(found.cases.size(), 2U);
  EXPECT_EQ(found.counts.asked, 0U);
}

}  // namespace
}  // namespace numcheck::run
