// Asking workers whether cases can run.
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fake.hpp"

namespace numcheck::worker::fake {
namespace {

using Kind = Outcome::Kind;

/// Cases with these acts, and their answers.
struct Asked {
  std::vector<plan::Case> cases;
  std::vector<Outcome> answers;
  std::vector<std::size_t> order;

  explicit Asked(const std::vector<std::string>& acts, const plan::Environment& environment = {}) {
    for (const std::string& act : acts) {
      cases.push_back(make_case(act, 4, environment));
    }
    answers.resize(cases.size());
  }
  Question question() {
    Question question;
    for (const plan::Case& c : cases) {
      question.cases.push_back(&c);
    }
    question.on_answer = [this](std::size_t index, const Outcome& outcome) {
      answers.at(index) = outcome;
      order.push_back(index);
    };
    return question;
  }
};

void ask_and_wait(WorkerPool& pool, Asked& asked) {
  pool.ask(asked.question());
  pool.wait_idle();
}

TEST(Questions, are_answered_in_order_without_running_anything) {
  WorkerOptions options = worker_options();
  options.execute.inject = "somersaults";
  WorkerPool pool(options);
  // "sigkill" would kill its worker if it ran.
  Asked asked({"add", "refused", "sigkill", "asked_throw", "add"});
  ask_and_wait(pool, asked);
  EXPECT_EQ(asked.order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  for (const std::size_t i : {0, 2, 4}) {
    EXPECT_EQ(asked.answers[i].kind, Kind::done) << asked.answers[i].reason;
    EXPECT_EQ(asked.answers[i].reason, "");
  }
  EXPECT_EQ(asked.answers[1].kind, Kind::unsupported);
  EXPECT_TRUE(contains(asked.answers[1].reason, "cannot do somersaults")) << asked.answers[1].reason;
  EXPECT_EQ(asked.answers[3].kind, Kind::error);
  EXPECT_EQ(asked.answers[3].reason, "EnvironmentError: libfake.so is missing");
}

TEST(Questions, of_many_cases_are_cheap_and_need_one_worker) {
  WorkerPool pool(worker_options());
  Asked asked(std::vector<std::string>(1000, "refused"));
  const auto start = Clock::now();
  ask_and_wait(pool, asked);
  const double elapsed_s = seconds_since(start);
  std::set<std::string> reasons;
  for (const Outcome& answer : asked.answers) {
    EXPECT_EQ(answer.kind, Kind::unsupported);
    reasons.insert(answer.reason);
  }
  EXPECT_EQ(reasons.size(), 1U) << "the reasons name the process";
  std::printf("[ measured ] %.0f us per case, worker's start included\n", 1e6 * elapsed_s / 1000);
  EXPECT_LT(elapsed_s, 10);
}

TEST(Questions, that_kill_their_worker_cost_that_case_only) {
  WorkerPool pool(worker_options());
  Asked asked({"add", "asked_kill", "add", "refused", "asked_kill", "add"});
  ask_and_wait(pool, asked);
  EXPECT_EQ(asked.order, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5}));
  for (const std::size_t i : {1, 4}) {
    EXPECT_EQ(asked.answers[i].kind, Kind::crashed);
    EXPECT_TRUE(contains(asked.answers[i].reason, "was killed by SIGKILL")) << asked.answers[i].reason;
  }
  for (const std::size_t i : {0, 2, 5}) {
    EXPECT_EQ(asked.answers[i].kind, Kind::done) << asked.answers[i].reason;
  }
  EXPECT_EQ(asked.answers[3].kind, Kind::unsupported);
}

TEST(Questions, that_hang_or_lie_cost_that_case_only) {
  WorkerOptions options = worker_options();
  options.answer_timeout_s = 0.3;
  WorkerPool pool(options);
  Asked asked({"asked_hang", "add", "asked_lie", "add"});
  ask_and_wait(pool, asked);
  EXPECT_EQ(asked.answers[0].kind, Kind::timeout);
  EXPECT_TRUE(contains(asked.answers[0].reason, "timed out after 0.3 s")) << asked.answers[0].reason;
  EXPECT_EQ(asked.answers[1].kind, Kind::done) << asked.answers[1].reason;
  EXPECT_EQ(asked.answers[2].kind, Kind::crashed);
  EXPECT_TRUE(contains(asked.answers[2].reason, "broke the protocol")) << asked.answers[2].reason;
  EXPECT_EQ(asked.answers[3].kind, Kind::done) << asked.answers[3].reason;
}

TEST(Questions, limit_worker_deaths_in_a_row) {
  WorkerOptions options = worker_options();
  options.max_consecutive_crashes = 2;
  WorkerPool pool(options);
  Asked asked(std::vector<std::string>(6, "asked_kill"));
  ask_and_wait(pool, asked);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(asked.answers[i].kind, i < 3 ? Kind::crashed : Kind::error);
  }
  EXPECT_TRUE(contains(asked.answers[5].reason, "3 workers in a row died without answering"))
      << asked.answers[5].reason;
}

TEST(Questions, do_not_excuse_cases_that_kill_their_worker) {
  WorkerOptions options = worker_options();
  options.max_consecutive_crashes = 1;
  WorkerPool pool(options);
  Collector collector(pool);
  const Done* last = nullptr;
  for (int i = 0; i < 3; ++i) {
    Asked asked({"add"});
    ask_and_wait(pool, asked);
    last = &collector.submit(make_case("exit7"));
    pool.wait_idle();
  }
  EXPECT_EQ(last->outcome.kind, Kind::error);
  EXPECT_TRUE(contains(last->outcome.reason, "2 workers in a row died without finishing")) << last->outcome.reason;
}

TEST(Questions, go_before_tasks_that_wait) {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  std::vector<const Done*> tasks;
  for (int i = 0; i < 200; ++i) {
    tasks.push_back(&collector.submit(make_case("several", 1000)));
  }
  Asked asked({"add"});
  int ended_before = -1;
  Question question = asked.question();
  question.on_answer = [&](std::size_t, const Outcome&) {
    ended_before = 0;
    for (const Done* done : tasks) {
      ended_before += done->ends;
    }
  };
  pool.ask(std::move(question));
  pool.wait_idle();
  EXPECT_GE(ended_before, 0);
  EXPECT_LT(ended_before, 200);
}

TEST(Questions, of_a_worker_that_does_not_start_get_the_reason) {
  WorkerPool pool(worker_options({"--start=fail"}));
  Asked asked({"add", "refused"});
  ask_and_wait(pool, asked);
  for (const Outcome& answer : asked.answers) {
    EXPECT_EQ(answer.kind, Kind::error);
    EXPECT_EQ(answer.reason, "cuda:7 does not exist: this machine has 1 device");
  }
}

TEST(Questions, end_when_the_run_is_interrupted) {
  WorkerPool pool(worker_options());
  Asked asked({"asked_hang", "add"});
  pool.ask(asked.question());
  pool.kill_workers();
  pool.wait_idle();
  for (const Outcome& answer : asked.answers) {
    EXPECT_EQ(answer.kind, Kind::error);
    EXPECT_EQ(answer.reason, "interrupted");
  }
}

TEST(Questions, long_sentences_are_cut) {
  WorkerPool pool(worker_options());
  Asked asked(std::vector<std::string>(40, "asked_long"));
  ask_and_wait(pool, asked);
  for (const Outcome& answer : asked.answers) {
    EXPECT_EQ(answer.kind, Kind::unsupported);
    EXPECT_TRUE(answer.reason.ends_with("\"...")) << answer.reason.size();
  }
}

TEST(Questions, exceptions_of_callbacks_are_thrown_again_by_wait_idle) {
  for (const bool in_process : {false, true}) {
    WorkerOptions options = worker_options();
    options.in_process = in_process;
    WorkerPool pool(options);
    Asked asked({"add", "add"});
    Question question = asked.question();
    int answers = 0;
    question.on_answer = [&](std::size_t, const Outcome&) {
      ++answers;
      throw core::IoError("disk full");
    };
    pool.ask(std::move(question));
    EXPECT_THROW(pool.wait_idle(), core::IoError);
    EXPECT_EQ(answers, 1);
  }
}

TEST(Questions, are_about_one_environment) {
  WorkerPool pool(worker_options());
  const plan::Case plain = make_case("add");
  const plan::Case other = make_case("add", 4, {{"NVIDIA_TF32_OVERRIDE", "0"}});
  EXPECT_THROW(pool.ask({{&plain, &other}, [](std::size_t, const Outcome&) {}}), core::InternalError);
  EXPECT_THROW(pool.ask({{&plain}, {}}), core::InternalError);
  pool.ask({{}, [](std::size_t, const Outcome&) { FAIL(); }});
  pool.wait_idle();
}

TEST(Questions, are_answered_in_process_too) {
  WorkerOptions options = worker_options();
  options.in_process = true;
  WorkerPool pool(options);
  Asked asked({"add", "refused", "asked_throw"});
  ask_and_wait(pool, asked);
  EXPECT_EQ(asked.answers[0].kind, Kind::done);
  EXPECT_EQ(asked.answers[1].kind, Kind::unsupported);
  EXPECT_EQ(asked.answers[2].reason, "EnvironmentError: libfake.so is missing");
  pool.cancel_pending();
  Asked later({"add"});
  ask_and_wait(pool, later);
  EXPECT_EQ(later.answers[0].reason, "interrupted");
}

}  // namespace
}  // namespace numcheck::worker::fake
