// The coordinator's pipeline against a made-up op and devices that misbehave on request.
#include "run/pipeline.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "copy.hpp"
#include "op/field.hpp"
#include "prepare/group.hpp"

namespace numcheck::run::copy {
namespace {

verdict::Status status_of(const plan::Case& c) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  return run_cases({c}, catalog, in_process()).cases.at(0).status;
}

TEST(Pipeline, clean_copy_passes) {
  EXPECT_EQ(status_of(make_case(5000, "fp32")), verdict::Status::pass);
  EXPECT_EQ(status_of(make_case(5000, "bf16")), verdict::Status::pass);
}

TEST(Pipeline, a_reference_that_does_not_return_is_reported) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  const plan::Case c = make_case(5000, "fp32");
  PipelineOptions options = in_process();
  std::vector<std::string> sentences;
  options.on_stuck = [&sentences](const std::string& sentence) { sentences.push_back(sentence); };
  options.reference_grace_s = 0.2;
  EXPECT_EQ(run_cases({c}, catalog, options).cases.at(0).status, verdict::Status::pass);
  EXPECT_TRUE(sentences.empty());
  reference_delay = std::chrono::milliseconds(700);
  EXPECT_EQ(run_cases({c}, catalog, options).cases.at(0).status, verdict::Status::pass);
  reference_delay = std::chrono::milliseconds(0);
  ASSERT_EQ(sentences.size(), 1U);
  EXPECT_NE(sentences[0].find("the reference of " + c.id + " is stuck"), std::string::npos) << sentences[0];
}

/// References that would take an hour, as long as this exists.
struct EndlessReferences {
  EndlessReferences() { reference_steps = 360'000; }
  ~EndlessReferences() { reference_steps = 0; }
  EndlessReferences(const EndlessReferences&) = delete;
  EndlessReferences& operator=(const EndlessReferences&) = delete;
};

TEST(Pipeline, the_time_limit_counts_the_reference) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  const std::vector<plan::Case> cases = {make_case(50, "fp32"), make_case(5000, "fp32"), make_case(5000, "bf16")};
  PipelineOptions options = in_process();
  options.workers.timeout_s = 0.3;
  const EndlessReferences endless;
  const auto start = std::chrono::steady_clock::now();
  const PipelineResult result = run_cases(cases, catalog, options);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_EQ(result.cases[0].status, verdict::Status::pass);
  for (const std::size_t slow : {1, 2}) {  // of one group
    EXPECT_EQ(result.cases[slow].status, verdict::Status::timeout);
    EXPECT_EQ(
        result.cases[slow].record.at("reason"),
        "the reference of " + cases[1].id +
            " took longer than 0.3 s on the host (--timeout, or timeout_s of the plan); the outputs were not judged");
  }
}

TEST(Pipeline, a_case_may_have_a_time_limit_of_its_own_for_its_reference) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  plan::Case c = make_case(5000, "fp32");
  c.timeout_s = 60;
  PipelineOptions options = in_process();
  options.workers.timeout_s = 0.05;
  reference_steps = 50;
  EXPECT_EQ(run_cases({c}, catalog, options).cases.at(0).status, verdict::Status::pass);
  reference_steps = 0;
}

TEST(Pipeline, one_interrupt_ends_a_long_reference_and_keeps_what_was_judged) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  const std::vector<plan::Case> cases = {make_case(50, "fp32"), make_case(5000, "fp32")};
  PipelineOptions options = in_process();
  std::atomic<int> interrupts = 0;
  options.interrupted = [&interrupts] { return interrupts.load(); };
  options.on_finished = [&interrupts](const plan::Case&, const FinishedCase&) { interrupts = 1; };
  std::vector<std::string> waited_for;
  options.on_waiting = [&waited_for](const std::vector<std::string>& work) { waited_for = work; };
  const EndlessReferences endless;
  const auto start = std::chrono::steady_clock::now();
  const PipelineResult result = run_cases(cases, catalog, options);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.cases[0].status, verdict::Status::pass);
  EXPECT_EQ(result.cases[1].status, verdict::Status::skipped);
  EXPECT_EQ(result.cases[1].record.at("reason"), "not finished: the run was interrupted");
  EXPECT_EQ(waited_for, (std::vector<std::string>{"the reference of " + cases[1].id}));
}

TEST(Pipeline, one_flipped_bit_fails) {
  EXPECT_EQ(status_of(make_case(5000, "fp32", {"wrong"})), verdict::Status::fail);
}

TEST(Pipeline, broken_guard_and_race_fail) {
  EXPECT_EQ(status_of(make_case(5000, "fp32", {"out_of_bounds"})), verdict::Status::fail);
  EXPECT_EQ(status_of(make_case(5000, "fp32", {"racy"})), verdict::Status::fail);
}

TEST(Pipeline, unsupported_keeps_its_reason) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  const PipelineResult result = run_cases({make_case(50, "fp32", {"unsupported"})}, catalog, in_process());
  EXPECT_EQ(result.cases[0].status, verdict::Status::unsupported);
  EXPECT_EQ(result.cases[0].record.at("reason"), "this device cannot copy");
}

TEST(Pipeline, no_inputs_are_generated_for_cases_that_the_device_cannot_run) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  PipelineOptions options = in_process();
  options.no_wait_flops = 0;
  CopyDevice::executed = 0;
  const std::vector<plan::Case> refused = {make_case(5000, "fp32", {"refused"}), make_case(60, "bf16", {"refused"})};
  PipelineResult result = run_cases(refused, catalog, options);
  EXPECT_EQ(result.cases[0].status, verdict::Status::unsupported);
  EXPECT_EQ(result.cases[1].record.at("reason"), "this device refuses to copy");
  EXPECT_EQ(CopyDevice::executed, 0);
  EXPECT_EQ(result.times.stages.inputs_s, 0.0) << "no inputs were generated";
  EXPECT_EQ(result.times.stages.reference_s, 0.0);

  const std::vector<plan::Case> mixed = {make_case(5000, "fp32", {"refused"}), make_case(5000, "bf16"),
                                         make_case(5000, "fp32", {"support_throws"}), make_case(5000, "fp32")};
  ASSERT_EQ(prepare::group_cases(mixed, {0, 1, 2, 3}).size(), 1U);
  result = run_cases(mixed, catalog, options);
  EXPECT_EQ(result.cases[0].status, verdict::Status::unsupported);
  EXPECT_EQ(result.cases[1].status, verdict::Status::pass);
  EXPECT_EQ(result.cases[2].status, verdict::Status::error);
  EXPECT_EQ(result.cases[2].record.at("reason"), "EnvironmentError: libcopy.so is missing");
  EXPECT_EQ(result.cases[3].status, verdict::Status::pass);
  EXPECT_EQ(CopyDevice::executed, 2);
  EXPECT_GT(result.times.stages.inputs_s, 0.0);
}

TEST(Pipeline, cheap_groups_do_not_wait_for_the_answer_and_end_the_same) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  PipelineOptions options = in_process();
  std::promise<void> go;
  options.workers.factory = [ready = go.get_future().share()](const machine::DeviceChoice&) {
    ready.wait();
    return std::make_unique<CopyDevice>();
  };
  const std::vector<plan::Case> cases = {make_case(5000, "fp32", {"refused"}), make_case(5000, "fp32")};
  // Waiting for the answer of a device that is still starting, the group would know that one case is refused; going
  // ahead, it makes inputs for both.
  std::jthread starter([&go] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    go.set_value();
  });
  CopyDevice::executed = 0;
  const PipelineResult unasked = run_cases(cases, catalog, options);
  EXPECT_EQ(CopyDevice::executed, 2);
  options = in_process();
  options.no_wait_flops = 0;
  const PipelineResult asked = run_cases(cases, catalog, options);
  EXPECT_EQ(unasked.cases[0].record, asked.cases[0].record);
  EXPECT_EQ(unasked.cases[1].status, verdict::Status::pass);
}

TEST(Pipeline, workers_stay_for_the_next_cases) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  PipelineOptions options = in_process();
  std::atomic<int> started = 0;
  options.workers.factory = [&started](const machine::DeviceChoice&) {
    ++started;
    return std::make_unique<CopyDevice>();
  };
  worker::WorkerPool pool(options.workers);
  for (int i = 0; i < 3; ++i) {
    const PipelineResult result = run_cases({make_case(100 + i, "fp32")}, catalog, options, pool);
    EXPECT_EQ(result.cases[0].status, verdict::Status::pass);
    EXPECT_EQ(result.hello.device.name, "copier");
  }
  EXPECT_EQ(started, 1);
}

TEST(Pipeline, an_exception_costs_one_case) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  const PipelineResult result =
      run_cases({make_case(50, "fp32", {"throws"}), make_case(5000, "fp32")}, catalog, in_process());
  EXPECT_EQ(result.cases[0].status, verdict::Status::error);
  EXPECT_NE(result.cases[0].record.at("reason").get<std::string>().find("on fire"), std::string::npos);
  EXPECT_EQ(result.cases[1].status, verdict::Status::pass);
}

TEST(Pipeline, a_failure_is_explained_once_and_an_explanation_that_fails_costs_nothing_else) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  const std::vector<plan::Case> cases = {make_case(50, "fp32"), make_case(60, "fp32", {"wrong"})};
  std::atomic<int> asked = 0;
  PipelineOptions options = in_process();
  options.explain_failure = [&asked](const plan::Case&, const verdict::RunResult& result, auto) {
    ++asked;
    return std::optional(
        op::Finding{.name = "bit", .port = result.outputs.front().port, .text = {}, .cause = "one bit", .fake = {}});
  };
  const auto causes = [&](const PipelineResult& result) {
    std::vector<std::string> found;
    for (const auto& run : result.cases[1].record.at("runs")) {
      for (const auto& output : run.at("outputs")) {
        for (const auto& finding : output.at("findings")) {
          found.push_back(finding.value("cause", ""));
        }
      }
    }
    return found;
  };
  PipelineResult result = run_cases(cases, catalog, options);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(causes(result), (std::vector<std::string>{"one bit"}));
  options.explain_failure = [](const plan::Case&, const verdict::RunResult&, auto) -> std::optional<op::Finding> {
    throw std::runtime_error("no memory for that");
  };
  result = run_cases(cases, catalog, options);
  EXPECT_EQ(result.cases[1].status, verdict::Status::fail);
  EXPECT_EQ(result.cases[1].record.at("runs").size(), 1U);
  EXPECT_EQ(causes(result), (std::vector<std::string>{}));
}

TEST(Pipeline, case_that_cannot_fit_is_skipped_with_the_bytes_it_needs) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  PipelineOptions options = in_process();
  options.memory_bytes = 100'000;
  const PipelineResult result = run_cases({make_case(100'000, "fp32"), make_case(100, "fp32")}, catalog, options);
  EXPECT_EQ(result.cases[0].status, verdict::Status::skipped);
  EXPECT_NE(result.cases[0].record.at("reason").get<std::string>().find("--memory allows only"), std::string::npos);
  EXPECT_EQ(result.cases[1].status, verdict::Status::pass);
}

TEST(Pipeline, known_failure_and_unexpected_pass) {
  plan::Case known = make_case(5000, "fp32", {"wrong"});
  known.known_issues = {{.reason = "tracked as 12"}};
  EXPECT_EQ(status_of(known), verdict::Status::xfail);
  known.known_issues[0].expires = "2001-01-01";
  EXPECT_EQ(status_of(known), verdict::Status::fail);
  plan::Case passes = make_case(5000, "fp32");
  passes.known_issues = {{.reason = "tracked as 12"}};
  EXPECT_EQ(status_of(passes), verdict::Status::xpass);
}

TEST(Pipeline, known_issues_of_other_devices_excuse_nothing) {
  const auto issue = [](const char* reason, int sm, plan::VersionRange versions) {
    return plan::XFail{reason, "", {{{sm, sm}}, {{"libcopy", {std::move(versions)}}}}};
  };
  plan::Case known = make_case(5000, "fp32", {"wrong"});
  known.known_issues = {issue("another architecture", 80, {}), issue("later versions", 90, {{1, 3}, {}})};
  EXPECT_EQ(status_of(known), verdict::Status::fail);
  known.known_issues.push_back(issue("this one", 90, {{1, 2}, {1, 2}}));
  known.known_issues.push_back(plan::XFail{"every device", "", {}});
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  const PipelineResult result = run_cases({known}, catalog, in_process());
  EXPECT_EQ(result.cases[0].status, verdict::Status::xfail);
  EXPECT_EQ(result.cases[0].record.at("xfail").at("reason"), "this one") << "the first that applies";
  plan::Case passes = make_case(5000, "fp32");
  passes.known_issues = {issue("another architecture", 80, {})};
  EXPECT_EQ(status_of(passes), verdict::Status::pass);
  passes.known_issues = {issue("this one", 90, {})};
  EXPECT_EQ(status_of(passes), verdict::Status::xpass);
}

TEST(Pipeline, stops_after_the_failures_that_are_allowed) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  std::vector<plan::Case> cases = {make_case(5000, "fp32", {"wrong"})};
  for (std::int64_t n = 1; n <= 400; ++n) {
    cases.push_back(make_case(n, "fp32"));
  }
  PipelineOptions options = in_process();
  options.stop_after_failures = 1;
  const PipelineResult result = run_cases(cases, catalog, options);
  EXPECT_EQ(result.cases.front().status, verdict::Status::fail);
  EXPECT_EQ(result.cases.back().status, verdict::Status::skipped);
  EXPECT_FALSE(result.interrupted);
}

TEST(Pipeline, resumed_cases_keep_their_records) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  const std::vector<plan::Case> cases = {make_case(5000, "fp32", {"wrong"}), make_case(60, "fp32")};
  const nlohmann::json stored = {{"status", "pass"}, {"marker", 42}};
  const PipelineResult result = run_cases(cases, catalog, in_process(), {{cases[0].digest, stored}});
  EXPECT_EQ(result.cases[0].record, stored);
  EXPECT_EQ(result.cases[1].status, verdict::Status::pass);
}

TEST(Grouping, shares_inputs_across_modes_and_storage_but_not_shapes) {
  plan::Case padded = make_case(16, "fp32");
  padded.params = op::to_params(CopyParams{.n = 16, .pad = 8});
  const std::vector<plan::Case> cases = {make_case(16, "fp32"), make_case(16, "bf16"), padded, make_case(17, "fp32"),
                                         make_case(16, "fp32", {}, "positive")};
  const std::vector<prepare::GroupPlan> groups = prepare::group_cases(cases, {0, 1, 2, 3, 4});
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].cases, (std::vector<std::size_t>{0, 1, 2}));
}

}  // namespace
}  // namespace numcheck::run::copy
