// results.jsonl: what survives, and when a run may be resumed.
#include "run/journal.hpp"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class JournalTest : public testing::Test {
 protected:
  std::string file() const { return folder_ + "/results.jsonl"; }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }
  void add(const std::string& text) const { std::ofstream(file(), std::ios::app) << text; }

  static JournalHeader header() {
    JournalHeader result;
    result.plan_digest = "xxh128:1";
    result.tool_version = "0.1.0";
    result.device = {"NVIDIA H200", 90, false, 0, "GPU-1", "580.65", 1, 132};
    result.libraries = {{"cublaslt", "13.1.0"}};
    result.shard = "0/1";
    result.environment = {{"NVIDIA_TF32_OVERRIDE", std::nullopt, true}};
    result.settings = {{"repeat", "2"}};
    return result;
  }

  /// The message that refuses to resume.
  std::string refusal(const JournalHeader& changed) const {
    try {
      (void)Journal::open_for_resume(folder_, changed);
    } catch (const core::UsageError& error) {
      std::string lines = error.what();
      for (const std::string& note : error.notes()) {
        lines += "\n" + note;
      }
      return lines;
    }
    return "";
  }

  const test::TemporaryFolder own_;
  const std::string folder_ = own_.path().string();
};

core::Digest digest(std::uint64_t number) {
  return {number, ~number};
}

/// A record as a case that needs no device has it.
json record(const core::Digest& of, const std::string& id, const std::string& status) {
  return {{"id", id},
          {"digest", of.hex()},
          {"status", status},
          {"reason", ""},
          {"op", "gemm"},
          {"mode", "fp32"},
          {"backend", "sim"},
          {"params", json::object()},
          {"inputs", json::object()},
          {"seed", 1},
          {"environment", json::object()},
          {"tags", json::array()},
          {"tolerance", json::object()},
          {"runs", json::array()},
          {"error_over_limit", 0.1},
          {"time_s", {{"inputs", 0}, {"device", 0}, {"reference", 0}, {"comparison", 0}, {"yardsticks", 0}}}};
}

void append(Journal& journal, std::uint64_t number, const std::string& id, const std::string& status) {
  journal.append(digest(number), id, record(digest(number), id, status));
}

TEST_F(JournalTest, keeps_finished_cases_across_a_resume) {
  {
    Journal journal = Journal::create(folder_, header());
    append(journal, 1, "gemm/a", "pass");
    append(journal, 2, "gemm/b", "crashed");
    append(journal, 3, "gemm/c", "fail");
  }
  {
    auto resumed = Journal::open_for_resume(folder_, header());
    EXPECT_TRUE(resumed.notes.empty());
    ASSERT_EQ(resumed.finished.size(), 2U);
    EXPECT_EQ(resumed.finished[0].digest, digest(1));
    EXPECT_EQ(resumed.finished[0].id, "gemm/a");
    EXPECT_EQ(resumed.finished[0].record, record(digest(1), "gemm/a", "pass").dump());
    EXPECT_EQ(resumed.finished[1].digest, digest(3));
    append(resumed.journal, 2, "gemm/b", "pass");
  }
  EXPECT_EQ(Journal::open_for_resume(folder_, header()).finished.size(), 3U);
}

TEST_F(JournalTest, runs_again_what_has_no_verdict) {
  {
    Journal journal = Journal::create(folder_, header());
    int number = 0;
    for (const char* status : {"pass", "warn", "fail", "inconclusive", "unsupported", "xfail", "xpass", "skipped",
                               "error", "crashed", "timeout", "something new"}) {
      append(journal, static_cast<std::uint64_t>(++number), "x", status);
    }
    append(journal, 1, "x", "error");  // a later record of the first counts
  }
  EXPECT_EQ(Journal::open_for_resume(folder_, header()).finished.size(), 6U);
}

TEST_F(JournalTest, drops_an_incomplete_last_line) {
  {
    Journal journal = Journal::create(folder_, header());
    append(journal, 1, "a", "pass");
  }
  const std::string whole = content();
  add(R"({"digest":"00000000000000020000)");
  {
    auto resumed = Journal::open_for_resume(folder_, header());
    EXPECT_EQ(resumed.finished.size(), 1U);
    ASSERT_EQ(resumed.notes.size(), 1U);
    EXPECT_NE(resumed.notes[0].find("results.jsonl:3: the last line is incomplete"), std::string::npos)
        << resumed.notes[0];
    EXPECT_EQ(content(), whole);
    append(resumed.journal, 2, "b", "pass");
  }
  EXPECT_EQ(Journal::open_for_resume(folder_, header()).finished.size(), 2U);
}

TEST_F(JournalTest, every_cut_of_the_last_line_resumes) {
  {
    Journal journal = Journal::create(folder_, header());
    append(journal, 1, "a", "pass");
  }
  const std::string first = content();
  {
    auto resumed = Journal::open_for_resume(folder_, header());
    append(resumed.journal, 2, "b", "pass");
  }
  const std::string both = content();
  for (std::size_t size = first.size(); size < both.size(); ++size) {
    fs::resize_file(file(), size);
    EXPECT_EQ(Journal::open_for_resume(folder_, header()).finished.size(), 1U) << size;
    std::ofstream(file()) << both;
  }
}

TEST_F(JournalTest, ignores_a_damaged_line_and_says_so) {
  {
    Journal journal = Journal::create(folder_, header());
    append(journal, 1, "a", "pass");
  }
  add("\x01\x02 garbage\n{\"digest\":\"12\",\"id\":\"x\",\"record\":{\"status\":\"pass\"}}\n{}\n[]\n");
  {
    Journal journal = std::move(Journal::open_for_resume(folder_, header()).journal);
    append(journal, 2, "b", "pass");
  }
  const auto resumed = Journal::open_for_resume(folder_, header());
  EXPECT_EQ(resumed.finished.size(), 2U);
  ASSERT_EQ(resumed.notes.size(), 4U);
  EXPECT_NE(resumed.notes[0].find("results.jsonl:3: damaged"), std::string::npos) << resumed.notes[0];
}

TEST_F(JournalTest, refuses_other_conditions_naming_them) {
  {
    Journal journal = Journal::create(folder_, header());
  }
  EXPECT_EQ(refusal(header()), "");
  JournalHeader changed = header();
  changed.plan_digest = "xxh128:2";
  EXPECT_NE(refusal(changed).find(R"(plan digest: was "xxh128:1", now "xxh128:2")"), std::string::npos)
      << refusal(changed);
  EXPECT_NE(refusal(changed).find("start a new run"), std::string::npos);
  changed = header();
  changed.tool_version = "0.2.0";
  changed.libraries = {{"cublaslt", "13.2.0"}, {"cudnn", "9.19"}};
  EXPECT_NE(refusal(changed).find(R"(tool version: was "0.1.0", now "0.2.0")"), std::string::npos);
  EXPECT_NE(refusal(changed).find(R"(library cublaslt: was "13.1.0", now "13.2.0")"), std::string::npos);
  EXPECT_NE(refusal(changed).find(R"(library cudnn: was not recorded, now "9.19")"), std::string::npos);
  changed = header();
  changed.device.uuid = "GPU-2";
  EXPECT_NE(refusal(changed).find("device uuid"), std::string::npos);
  changed = header();
  changed.device.index = 3;
  EXPECT_EQ(refusal(changed), "") << "the index is not a property of the device";
  changed = header();
  changed.shard = "1/2";
  EXPECT_NE(refusal(changed).find("shard"), std::string::npos);
  changed = header();
  changed.environment[0].value = "0";
  EXPECT_NE(refusal(changed).find(R"(environment variable NVIDIA_TF32_OVERRIDE: was "unset", now "=0")"),
            std::string::npos)
      << refusal(changed);
  changed = header();
  changed.settings[0].second = "3";
  EXPECT_NE(refusal(changed).find(R"(option repeat: was "2", now "3")"), std::string::npos);
}

TEST_F(JournalTest, refuses_what_is_not_a_journal) {
  EXPECT_NE(refusal(header()).find("does not exist"), std::string::npos);
  for (const char* text : {"", "\n", "{}\n", "plain text\n", "{\"journal\":\"other\"}\n", "[1,2]\n",
                           "{\"journal\": tor", "{\"journal\":\"te-numcheck/results\",\"version\":2,\"facts\":{}}\n"}) {
    std::ofstream(file()) << text;
    EXPECT_THROW((void)Journal::open_for_resume(folder_, header()), core::IoError) << text;
    EXPECT_EQ(content(), text) << "what is not ours is left alone";
  }
  std::ofstream(file()) << R"({"journal":"te-numcheck/results","version":1,"facts":{}})" << '\n';
  EXPECT_NE(refusal(header()).find("version 1, but this te-numcheck uses version 2"), std::string::npos);
}

TEST_F(JournalTest, does_not_overwrite) {
  {
    Journal journal = Journal::create(folder_, header());
  }
  EXPECT_THROW((void)Journal::create(folder_, header()), core::UsageError);
  EXPECT_THROW((void)Journal::create(folder_ + "/absent", header()), core::IoError);
}

TEST_F(JournalTest, has_one_writer) {
  const Journal journal = Journal::create(folder_, header());
  EXPECT_NE(refusal(header()).find("in use"), std::string::npos);
}

TEST_F(JournalTest, a_full_disk_keeps_what_was_there) {
  std::signal(SIGXFSZ, SIG_IGN);
  Journal journal = Journal::create(folder_, header());
  append(journal, 1, "a", "pass");
  const std::string before = content();
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit tight{before.size() + 20, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  std::string words;
  try {
    append(journal, 2, "b", "pass");
  } catch (const core::IoError& error) {
    words = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_NE(words.find(file()), std::string::npos) << words;
  EXPECT_NE(words.find("finished cases (1) are saved"), std::string::npos) << words;
  EXPECT_EQ(content(), before);
}

TEST_F(JournalTest, survives_text_that_is_not_utf8) {
  {
    Journal journal = Journal::create(folder_, header());
    json odd = record(digest(1), "a\xff", "pass");
    odd["reason"] = "\xfe\n";
    journal.append(digest(1), "a\xff", odd);
  }
  EXPECT_EQ(Journal::open_for_resume(folder_, header()).finished.size(), 1U);
}

}  // namespace
}  // namespace numcheck::run
