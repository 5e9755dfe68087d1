// Workers of cases that name a version of a library: two versions never meet in one process.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fake.hpp"

namespace numcheck::worker::fake {
namespace {

plan::Case versioned_case(const std::string& backend) {
  plan::Case c = make_case("add");
  c.backend = backend;
  plan::identify(c);
  return c;
}

TEST(Versions, have_workers_of_their_own) {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  std::map<std::string, std::set<std::string>> pids;
  std::vector<std::pair<std::string, const Done*>> tasks;
  for (const char* backend : {"te@2.20.2", "te@2.11.0", "sim", "te@2.20.2", "te@2.11.0", "cuda"}) {
    tasks.emplace_back(backend, &collector.submit(versioned_case(backend)));
  }
  pool.wait_idle();
  for (const auto& [backend, done] : tasks) {
    ASSERT_EQ(done->runs.size(), 1U) << backend << ": " << done->outcome.reason;
    pids[backend].insert(detail(done->runs[0], "pid"));
  }
  EXPECT_EQ(pids["te@2.20.2"].size(), 1U);
  EXPECT_EQ(pids["te@2.11.0"].size(), 1U);
  EXPECT_NE(pids["te@2.20.2"], pids["te@2.11.0"]);
  EXPECT_NE(pids["te@2.20.2"], pids["sim"]);
  EXPECT_EQ(pids["sim"], pids["cuda"]) << "names without version share a worker";
}

TEST(Versions, of_every_environment_have_workers_of_their_own) {
  const plan::Case one = versioned_case("te@1");
  plan::Case other = one;
  other.environment = {{"NVIDIA_TF32_OVERRIDE", "0"}};
  EXPECT_NE(worker_key(one), worker_key(other));
  EXPECT_NE(worker_key(one), worker_key(versioned_case("te@2")));
  EXPECT_EQ(worker_key(one), worker_key(versioned_case("te@1")));
  EXPECT_EQ(worker_key(versioned_case("sim")), WorkerKey{});
}

TEST(Versions, are_not_mixed_in_one_question) {
  WorkerPool pool(worker_options());
  const plan::Case one = versioned_case("te@1"), other = versioned_case("te@2");
  EXPECT_THROW(pool.ask({{&one, &other}, [](std::size_t, const Outcome&) {}}), core::InternalError);
}

}  // namespace
}  // namespace numcheck::worker::fake
