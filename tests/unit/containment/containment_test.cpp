// One fault of the device costs one case: through coordinator, workers, harness and verdicts, for a fault at every call
// that a case makes to its device. The test executable is its own worker.
#include <charconv>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "catalog.hpp"
#include "faulty_device.hpp"
#include "report/summary.hpp"
#include "run/pipeline.hpp"
#include "worker/workers.hpp"

namespace numcheck::containment {
namespace {

using nlohmann::json;

constexpr std::int64_t kFaultyM = 24;

/// Four products; FP32 is classified, so its launches are many.
std::vector<plan::Case> four_cases() {
  std::vector<plan::Case> cases;
  for (const std::int64_t m : {std::int64_t{8}, kFaultyM, std::int64_t{40}, std::int64_t{56}}) {
    cases.push_back(plan::case_from_json({{"op", "gemm"},
                                          {"mode", m == kFaultyM ? "fp32" : "bf16"},
                                          {"backend", "cublaslt"},
                                          {"seed", 7},
                                          {"params", {{"m", m}, {"n", 16}, {"k", 32}}}},
                                         &app::find_op));
  }
  return cases;
}

struct Ran {
  std::vector<json> records;
  std::vector<std::string> replaced;

  [[nodiscard]] std::string status(std::size_t i) const { return records.at(i).at("status"); }
  [[nodiscard]] std::string reason(std::size_t i) const { return records.at(i).value("reason", std::string()); }
  [[nodiscard]] std::string pid(std::size_t i) const {
    return records.at(i).at("runs").at(0).at("details").value("pid", std::string());
  }
  [[nodiscard]] std::size_t count(std::string_view status) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(records, [status](const json& record) { return record.at("status") == status; }));
  }
  [[nodiscard]] core::ExitCode exit_code() const { return report::exit_code_of(report::summarise(records), {}); }
};

Ran run(const Fault& fault, bool in_process = false) {
  Ran ran;
  std::mutex mutex;
  run::PipelineOptions options;
  options.workers.in_process = in_process;
  options.workers.factory = [fault](const machine::DeviceChoice&) { return make_faulty_executor(fault); };
  options.workers.worker_argv = {"exec", fmt::format("{}", fault.call), fmt::format("{}", fault.m),
                                 fmt::format("{}", fault.between_cases)};
  options.workers.on_replaced = [&](const std::string& why) {
    const std::lock_guard lock(mutex);
    ran.replaced.push_back(why);
  };
  run::PipelineResult result = run::run_cases(four_cases(), app::catalog(), options);
  for (run::FinishedCase& finished : result.cases) {
    ran.records.push_back(std::move(finished.record));
  }
  return ran;
}

std::string text_of(const Ran& ran) {
  std::string text;
  for (std::size_t i = 0; i < ran.records.size(); ++i) {
    text += fmt::format("{}: {} {}\n", i, ran.status(i), ran.reason(i));
  }
  return text;
}

/// The call that a crash names first: "upload" of "... EnvironmentError: upload failed: ...".
std::string failed_call(const std::string& reason) {
  const std::size_t end = reason.find(" failed");
  const std::size_t colon = reason.rfind(": ", end);
  return reason.substr(colon == std::string::npos ? 0 : colon + 2, end - (colon == std::string::npos ? 0 : colon + 2));
}

TEST(Containment, without_a_fault_all_pass_on_one_worker) {
  const Ran ran = run({});
  EXPECT_EQ(ran.count("pass"), 4U) << text_of(ran);
  EXPECT_EQ(ran.pid(0), ran.pid(3));
  EXPECT_EQ(ran.exit_code(), core::ExitCode::success);
}

TEST(Containment, a_fault_at_any_call_costs_its_case_only) {
  const Ran clean = run({});
  std::set<std::string> calls;
  int faults = 0;
  for (int call = 1;; ++call) {
    const Ran ran = run({.call = call, .m = kFaultyM});
    if (ran.count("crashed") == 0) {
      EXPECT_EQ(ran.count("pass"), 4U) << text_of(ran);
      break;  // the case makes no further call
    }
    ++faults;
    ASSERT_EQ(ran.status(1), "crashed") << "call " << call << '\n' << text_of(ran);
    ASSERT_EQ(ran.count("pass"), 3U) << "call " << call << '\n' << text_of(ran);
    ASSERT_EQ(ran.exit_code(), core::ExitCode::environment);
    EXPECT_NE(ran.reason(1).find("illegal memory access"), std::string::npos) << ran.reason(1);
    calls.insert(failed_call(ran.reason(1)));
    for (const std::size_t other : {0U, 2U, 3U}) {
      ASSERT_EQ(ran.records[other].at("runs").at(0).at("outputs"), clean.records[other].at("runs").at(0).at("outputs"))
          << "call " << call << ": another case's outputs changed";
    }
  }
  EXPECT_GT(faults, 60) << "so few calls are no FP32 product with its classification";
  for (const char* call :
       {"allocate", "fill", "upload", "record", "event synchronize", "synchronize", "download", "heuristic"}) {
    EXPECT_TRUE(calls.contains(call)) << call << " never failed first";
  }
}

TEST(Containment, a_crash_reports_the_first_error_and_the_launch_before_it) {
  std::set<std::string> launches;
  for (int call = 1; call <= 60; call += 3) {
    const Ran ran = run({.call = call, .m = kFaultyM});
    const std::string reason = ran.reason(1);
    const bool names_the_launch = reason.find("it followed the launch of ") != std::string::npos ||
                                  reason.find(" launches, from ") != std::string::npos ||
                                  reason.find("the last launch was ") != std::string::npos ||
                                  reason.find("nothing had been launched") != std::string::npos;
    EXPECT_TRUE(names_the_launch) << reason;
    const std::size_t place = reason.find("classification ");
    if (place != std::string::npos) {
      launches.insert(reason.substr(place, std::string("classification 1").size()));
    }
  }
  EXPECT_GE(launches.size(), 2U) << "every launch has a name of its own";
}

TEST(Containment, the_worker_is_replaced) {
  const Ran ran = run({.call = 40, .m = kFaultyM});
  ASSERT_EQ(ran.status(1), "crashed") << text_of(ran);
  EXPECT_NE(ran.pid(0), ran.pid(3));
}

TEST(Containment, a_fault_between_two_cases_costs_none_and_is_reported) {
  for (const int after : {1, 2, 3}) {
    const Ran ran = run({.between_cases = after});
    EXPECT_EQ(ran.count("pass"), 4U) << text_of(ran);
    EXPECT_EQ(ran.exit_code(), core::ExitCode::success);
    ASSERT_FALSE(ran.replaced.empty()) << after;
    EXPECT_NE(ran.replaced.front().find("lost between two cases"), std::string::npos) << ran.replaced.front();
    EXPECT_NE(ran.replaced.front().find("an earlier one may be the cause"), std::string::npos) << ran.replaced.front();
  }
}

TEST(Containment, in_one_process_the_cases_after_the_fault_say_why_they_did_not_run) {
  const Ran ran = run({.call = 40, .m = kFaultyM}, true);
  EXPECT_EQ(ran.status(0), "pass");
  EXPECT_EQ(ran.status(1), "crashed");
  for (const std::size_t later : {2U, 3U}) {
    EXPECT_EQ(ran.status(later), "error");
    EXPECT_NE(ran.reason(later).find("lost its device in gemm/m=24"), std::string::npos) << ran.reason(later);
  }
}

int number(const char* text) {
  int value = 0;
  std::from_chars(text, text + std::string_view(text).size(), value);
  return value;
}

}  // namespace
}  // namespace numcheck::containment

int main(int argc, char** argv) {
  using namespace numcheck;
  if (argc == 5 && std::string_view(argv[1]) == "exec") {
    const containment::Fault fault{.call = containment::number(argv[2]),
                                   .m = containment::number(argv[3]),
                                   .between_cases = containment::number(argv[4])};
    const auto factory = [fault](const machine::DeviceChoice&) { return containment::make_faulty_executor(fault); };
    return worker::worker_main(worker::kWorkerSocketFd, {}, factory, &app::find_op);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
