// The status of a case from its end and its runs: results of earlier runs never hide a lost worker.
#include <gtest/gtest.h>

#include "tests/unit/run/copy.hpp"
#include "verdict/evaluate.hpp"

namespace numcheck::run::copy {
namespace {

using verdict::Status;

struct Concluded {
  plan::Case c = make_case(50, "fp32");
  verdict::CaseResult result;

  Concluded(worker::Outcome::Kind kind, std::vector<Status> runs, bool known) {
    if (known) {
      c.xfail = plan::XFail{.reason = "tracked as 12"};
    }
    result.c = &c;
    for (const Status status : runs) {
      verdict::RunResult run;
      run.status = status;
      run.failing = status == Status::fail ? "y: G1 bound 9 > 1" : "";
      result.runs.push_back(std::move(run));
    }
    verdict::conclude(result, {kind, "the worker was killed by SIGSEGV", 0}, "2026-01-01");
  }
};

TEST(Conclude, a_lost_worker_is_not_hidden_by_a_run_that_failed) {
  for (const bool known : {false, true}) {
    for (const auto& [kind, status] : {std::pair{worker::Outcome::Kind::crashed, Status::crashed},
                                       std::pair{worker::Outcome::Kind::timeout, Status::timeout}}) {
      const Concluded concluded(kind, {Status::fail}, known);
      EXPECT_EQ(concluded.result.status, status);
      EXPECT_NE(concluded.result.reason.find("SIGSEGV"), std::string::npos) << concluded.result.reason;
      EXPECT_NE(concluded.result.reason.find("before that a run failed: y: G1"), std::string::npos)
          << concluded.result.reason;
    }
  }
}

TEST(Conclude, a_failure_before_a_crash_is_not_a_known_failure) {
  EXPECT_EQ(Concluded(worker::Outcome::Kind::error, {Status::fail}, true).result.status, Status::fail);
  EXPECT_EQ(Concluded(worker::Outcome::Kind::done, {Status::fail}, true).result.status, Status::xfail);
  EXPECT_EQ(Concluded(worker::Outcome::Kind::done, {Status::pass}, false).result.status, Status::pass);
  EXPECT_EQ(Concluded(worker::Outcome::Kind::crashed, {Status::pass}, false).result.status, Status::crashed);
}

}  // namespace
}  // namespace numcheck::run::copy
