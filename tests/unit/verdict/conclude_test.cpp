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
    std::vector<plan::XFail> issues;
    if (known) {
      issues.push_back({.reason = "tracked as 12"});
    }
    result.c = &c;
    for (const Status status : runs) {
      verdict::RunResult run;
      run.status = status;
      run.failing = status == Status::fail ? "y: G1 bound 9 > 1" : "";
      result.runs.push_back(std::move(run));
    }
    verdict::conclude(result, {kind, "the worker was killed by SIGSEGV", 0}, issues, "2026-01-01");
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

/// A case of two runs, the second with two outputs, all failed.
struct Explained {
  plan::Case c = make_case(50, "fp32");
  verdict::CaseResult result;

  Explained() {
    result.c = &c;
    for (const std::size_t outputs : {1U, 2U}) {
      verdict::RunResult run;
      run.status = Status::fail;
      run.failing = "y: G1 bound 9 > 1";
      for (std::size_t i = 0; i < outputs; ++i) {
        verdict::OutputResult output;
        output.criteria.push_back({"G1 bound", 9, 1, false, ""});
        output.findings.push_back(
            {.name = "range_of_k", .port = "y", .measured = 0.99, .text = "", .cause = "a tail is missing"});
        run.outputs.push_back(std::move(output));
      }
      result.runs.push_back(std::move(run));
    }
  }
  Status conclude(const char* cause = "a tail is missing") {
    const plan::XFail issue{.reason = "tracked as 12", .expires = "", .where = {}, .cause = cause};
    verdict::conclude(result, {worker::Outcome::Kind::done, "", 0}, {&issue, 1}, "2026-01-01");
    return result.status;
  }
};

TEST(Conclude, a_known_cause_excuses_only_what_it_explains) {
  Explained same;
  EXPECT_EQ(same.conclude(), Status::xfail);
  ASSERT_TRUE(same.result.known_issue);
  EXPECT_EQ(same.result.known_issue->cause, "a tail is missing");
  EXPECT_EQ(Explained().conclude("another cause"), Status::fail);

  Explained unexplained;
  unexplained.result.runs[1].outputs[1].findings.clear();
  EXPECT_EQ(unexplained.conclude(), Status::fail);
  EXPECT_FALSE(unexplained.result.known_issue);
  Explained conduct;
  conduct.result.runs[1].outputs[1].criteria.push_back(
      {"G0 guards", 1, 0, false, "", tolerance::Criterion::About::conduct});
  EXPECT_EQ(conduct.conclude(), Status::fail) << "a lost product writes nothing out of bounds";
  Explained pattern;
  pattern.result.runs[1].outputs[1].criteria.push_back(
      {"G0 pattern", 7, 0, false, "", tolerance::Criterion::About::pattern});
  EXPECT_EQ(pattern.conclude(), Status::fail) << "a lost product makes no NaN";
  Explained partly;
  partly.result.runs[0].outputs[0].findings[0].measured = 0.9;
  EXPECT_EQ(partly.conclude(), Status::fail);
  Explained other;
  for (verdict::OutputResult& output : other.result.runs[1].outputs) {
    output.criteria.front().ok = true;
  }
  EXPECT_EQ(other.conclude(), Status::fail) << "that run fails for a reason that is no gate";
  Explained broken;
  broken.result.runs[0].status = Status::error;
  EXPECT_EQ(broken.conclude(), Status::fail);
}

using About = op::Finding::About;

TEST(Conclude, runs_that_differ_excuse_no_error) {
  const auto with = [](About about, bool errors) {
    Explained made;
    for (verdict::RunResult& run : made.result.runs) {
      for (verdict::OutputResult& output : run.outputs) {
        output.criteria.front().ok = !errors;
        output.criteria.push_back({"G0 determinism", 1, 0, false, "", tolerance::Criterion::About::repetition});
        output.findings.front().about = about;
      }
    }
    return made.conclude();
  };
  EXPECT_EQ(with(About::repetition, false), Status::xfail);
  EXPECT_EQ(with(About::repetition, true), Status::fail);
  EXPECT_EQ(with(About::numbers, false), Status::fail);
}

TEST(Conclude, a_cause_of_nan_excuses_nothing_else) {
  const auto with = [](About about, bool errors) {
    Explained made;
    for (verdict::RunResult& run : made.result.runs) {
      for (verdict::OutputResult& output : run.outputs) {
        output.criteria.front().ok = !errors;
        output.criteria.push_back({"G0 pattern", 7, 0, false, "", tolerance::Criterion::About::pattern});
        output.findings.front().about = about;
      }
    }
    return made.conclude();
  };
  EXPECT_EQ(with(About::pattern, false), Status::xfail);
  EXPECT_EQ(with(About::pattern, true), Status::fail);
  EXPECT_EQ(with(About::numbers, false), Status::fail);
}

TEST(Conclude, only_a_cause_about_unwritten_elements_excuses_them) {
  const auto with = [](std::vector<About> explained, bool errors = false) {
    Explained made;
    for (verdict::RunResult& run : made.result.runs) {
      for (verdict::OutputResult& output : run.outputs) {
        output.criteria.front().ok = !errors;
        output.criteria.push_back({"G0 pattern", 7, 0, false, "", tolerance::Criterion::About::pattern});
        output.criteria.push_back({"G0 unwritten", 7, 0, false, "", tolerance::Criterion::About::unwritten});
        const op::Finding finding = output.findings.front();
        output.findings.clear();
        for (const About about : explained) {
          output.findings.push_back(finding);
          output.findings.back().about = about;
        }
      }
    }
    return made.conclude();
  };
  EXPECT_EQ(with({About::unwritten}), Status::xfail);
  EXPECT_EQ(with({About::pattern}), Status::fail) << "a NaN that was computed explains no element that was not written";
  EXPECT_EQ(with({About::numbers}), Status::fail);
  EXPECT_EQ(with({About::unwritten}, true), Status::fail) << "numbers are wrong as well";
  EXPECT_EQ(with({About::unwritten, About::numbers}, true), Status::xfail) << "both are explained";
}

TEST(Conclude, two_known_causes_explain_a_case_together) {
  const plan::XFail tail{.reason = "tracked as 12", .expires = "2026-06-30", .where = {}, .cause = "a tail is missing"};
  const plan::XFail draws{.reason = "tracked as 13", .expires = "2026-03-31", .where = {}, .cause = "draws are reused"};
  const auto concluded = [](const std::vector<plan::XFail>& issues, const char* today) {
    Explained failed;
    failed.result.runs[1].outputs[1].findings.front().cause = "draws are reused";
    verdict::conclude(failed.result, {worker::Outcome::Kind::done, "", 0}, issues, today);
    return failed.result;
  };
  const verdict::CaseResult both = concluded({tail, draws}, "2026-01-01");
  EXPECT_EQ(both.status, Status::xfail);
  ASSERT_TRUE(both.known_issue);
  EXPECT_EQ(both.known_issue->reason, "tracked as 12; tracked as 13");
  EXPECT_EQ(both.known_issue->expires, "2026-03-31");
  const verdict::CaseResult partly = concluded({tail}, "2026-01-01");
  EXPECT_EQ(partly.status, Status::fail);
  EXPECT_NE(partly.reason.find("G1 bound 9 > 1, besides what is known"), std::string::npos) << partly.reason;
  EXPECT_EQ(concluded({draws}, "2026-01-01").status, Status::fail);
  const verdict::CaseResult expired = concluded({tail, draws}, "2026-05-01");
  EXPECT_EQ(expired.status, Status::fail);
  EXPECT_NE(expired.reason.find("expired on 2026-03-31"), std::string::npos) << expired.reason;
}

/// A case whose second run ends in an error.
struct Refused {
  Explained failed;
  worker::Outcome outcome{worker::Outcome::Kind::done, "", 0};

  explicit Refused(bool first_fails = false) {
    if (!first_fails) {
      failed.result.runs[0] = {};
    }
    verdict::RunResult& second = failed.result.runs[1];
    second = {};
    second.status = Status::error;
    second.failing = second.run.error = "cudnnBackendFinalize (plan): STATUS_INTERNAL_ERROR";
  }
  Status conclude(const std::vector<plan::XFail>& issues) {
    verdict::conclude(failed.result, outcome, issues, "2026-01-01");
    return failed.result.status;
  }
};

plan::XFail refusal(std::string error, std::string expires = "") {
  return {
      .reason = "tracked as 14", .expires = std::move(expires), .where = {}, .cause = "", .error = std::move(error)};
}

TEST(Conclude, an_error_is_excused_only_by_an_entry_with_a_text_of_its_message) {
  Refused known;
  EXPECT_EQ(known.conclude({refusal("STATUS_OTHER"), refusal("STATUS_INTERNAL_ERROR")}), Status::xfail);
  EXPECT_EQ(known.failed.result.reason, "tracked as 14 (cudnnBackendFinalize (plan): STATUS_INTERNAL_ERROR)");
  EXPECT_EQ(Refused().conclude({refusal("STATUS_OTHER")}), Status::error);
  EXPECT_EQ(Refused().conclude({{.reason = "tracked as 12"}}), Status::error) << "such an entry expects wrong outputs";
  Refused ended;
  ended.outcome = {worker::Outcome::Kind::error, "the worker cannot: STATUS_OTHER", 0};
  EXPECT_EQ(ended.conclude({refusal("STATUS_INTERNAL_ERROR")}), Status::error) << "the case ended in another error";
  Refused expired;
  EXPECT_EQ(expired.conclude({refusal("STATUS_INTERNAL_ERROR", "2025-12-31")}), Status::error);
  EXPECT_TRUE(expired.failed.result.known_issue_expired);
  EXPECT_NE(expired.failed.result.reason.find("expired on 2025-12-31"), std::string::npos);
}

/// A case whose device is lost after its first run, which passes or fails.
Status concluded_crash(const std::vector<plan::XFail>& issues, bool first_fails = false,
                       worker::Outcome::Kind kind = worker::Outcome::Kind::crashed) {
  Refused lost(first_fails);
  lost.failed.result.runs.resize(1);
  lost.outcome = {kind, "cudaStreamSynchronize failed: an illegal memory access was encountered", 0};
  return lost.conclude(issues);
}

TEST(Conclude, a_crash_is_excused_only_by_an_entry_with_a_text_of_its_reason) {
  const std::string access = "an illegal memory access";
  EXPECT_EQ(concluded_crash({refusal("SIGSEGV"), refusal(access)}), Status::xfail);
  EXPECT_EQ(concluded_crash({{.reason = "tracked as 12"}}), Status::crashed) << "such an entry expects wrong outputs";
  EXPECT_EQ(concluded_crash({refusal("SIGSEGV")}), Status::crashed);
  EXPECT_EQ(concluded_crash({refusal(access, "2025-12-31")}), Status::crashed);
  EXPECT_EQ(concluded_crash({refusal(access)}, false, worker::Outcome::Kind::timeout), Status::timeout);
}

TEST(Conclude, a_known_crash_hides_no_failure_before_it) {
  const plan::XFail tail{.reason = "tracked as 12", .expires = "", .where = {}, .cause = "a tail is missing"};
  EXPECT_EQ(concluded_crash({refusal("an illegal memory access")}, true), Status::crashed);
  EXPECT_EQ(concluded_crash({refusal("an illegal memory access"), tail}, true), Status::xfail);
}

TEST(Conclude, runs_that_a_lost_device_ends_belong_to_the_crash) {
  for (const auto& [error, status] :
       {std::pair{"launch failed: an illegal memory access was encountered", Status::xfail},
        std::pair{"STATUS_INTERNAL_ERROR", Status::crashed}}) {
    Refused lost;
    lost.failed.result.runs[1].run.error = error;
    lost.outcome = {worker::Outcome::Kind::crashed, "an illegal memory access was encountered; the context is lost", 0};
    EXPECT_EQ(lost.conclude({refusal("an illegal memory access")}), status) << error;
  }
}

TEST(Conclude, a_worker_that_runs_out_of_time_is_never_excused) {
  Refused lost;
  lost.outcome = {worker::Outcome::Kind::timeout, "killed after STATUS_INTERNAL_ERROR", 0};
  EXPECT_NE(lost.conclude({refusal("STATUS_INTERNAL_ERROR"), refusal("killed after")}), Status::xfail);
}

TEST(Conclude, a_known_error_and_a_known_cause_explain_a_case_together) {
  const plan::XFail tail{.reason = "tracked as 12", .expires = "", .where = {}, .cause = "a tail is missing"};
  EXPECT_EQ(Refused(true).conclude({tail, refusal("STATUS_INTERNAL_ERROR")}), Status::xfail);
  EXPECT_EQ(Refused(true).conclude({tail}), Status::fail);
  EXPECT_EQ(Refused(true).conclude({refusal("STATUS_INTERNAL_ERROR")}), Status::fail);
}

TEST(Conclude, an_entry_for_an_error_expects_none) {
  Refused passes;
  passes.failed.result.runs[1] = {};
  EXPECT_EQ(passes.conclude({refusal("STATUS_INTERNAL_ERROR")}), Status::pass);
  EXPECT_FALSE(passes.failed.result.known_issue);
}

TEST(Conclude, of_several_entries_the_place_is_that_of_the_one_that_expires_first) {
  const auto issue = [](const char* cause, const char* expires, std::size_t line) {
    plan::XFail made{.reason = "12", .expires = expires, .where = {}, .cause = cause};
    made.place = {"known.json", line, 5};
    return made;
  };
  Explained failed;
  failed.result.runs[1].outputs[1].findings.front().cause = "draws are reused";
  verdict::conclude(failed.result, {worker::Outcome::Kind::done, "", 0},
                    std::vector{issue("a tail is missing", "", 3), issue("draws are reused", "2025-12-31", 4)},
                    "2026-01-01");
  EXPECT_EQ(failed.result.status, Status::fail);
  EXPECT_NE(failed.result.reason.find("its known issue at known.json:4:5 expired on 2025-12-31"), std::string::npos)
      << failed.result.reason;
}

TEST(Conclude, an_expired_entry_does_not_hide_a_valid_one) {
  const plan::XFail expired{.reason = "old", .expires = "2025-12-31"}, valid{.reason = "new", .expires = "2026-12-31"};
  for (const auto& issues : {std::vector{expired, valid}, std::vector{valid, expired}}) {
    Explained failed;
    verdict::conclude(failed.result, {worker::Outcome::Kind::done, "", 0}, issues, "2026-01-01");
    EXPECT_EQ(failed.result.status, Status::xfail);
    EXPECT_EQ(failed.result.known_issue->reason, "new");
  }
}

TEST(Conclude, expired_entries_are_noted_unless_they_apply) {
  const plan::XFail old{.reason = "old", .expires = "2025-12-31"},
      cause{.reason = "cause", .expires = "2025-12-31", .where = {}, .cause = "x"};
  const plan::XFail valid{.reason = "new", .expires = "2026-01-01"};
  Explained failed;
  verdict::conclude(failed.result, {worker::Outcome::Kind::done, "", 0}, std::vector{old, cause}, "2026-01-01");
  EXPECT_EQ(failed.result.known_issue->reason, "old");
  EXPECT_EQ(failed.result.expired_issues, std::vector{cause});
  Explained excused;
  verdict::conclude(excused.result, {worker::Outcome::Kind::done, "", 0}, std::vector{old, cause, valid}, "2026-01-01");
  EXPECT_EQ(excused.result.expired_issues, (std::vector{old, cause}));
  verdict::CaseResult refused;
  verdict::conclude(refused, {worker::Outcome::Kind::unsupported, "", 0}, std::vector{cause, valid}, "2026-01-01");
  EXPECT_EQ(refused.expired_issues, std::vector{cause});
}

TEST(Conclude, a_known_cause_expects_no_failure) {
  Explained passes;
  for (verdict::RunResult& run : passes.result.runs) {
    run.status = Status::pass;
  }
  EXPECT_EQ(passes.conclude(), Status::pass) << "no xpass: not every shape has the issue";
  EXPECT_FALSE(passes.result.known_issue);
}

}  // namespace
}  // namespace numcheck::run::copy
