// Lines of a journal that no run has written.
#include "run/journal_text.hpp"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "journal_sample.hpp"
#include "report/record_shape.hpp"
#include "tests/unit/report/sample_record.hpp"

namespace numcheck::run {
namespace {

using nlohmann::json;
using namespace test;

const std::string kPath = "out/results.jsonl";

TEST(JournalText, a_line_of_another_journal_is_not_accepted) {
  const JournalHead mine = journal_head({{"plan digest", "1"}});
  const JournalHead other = journal_head({{"plan digest", "2"}});
  const json record = record_of(1, "pass");
  EXPECT_EQ(parse_journal(mine.line + '\n' + line_of(mine.checksum, 1, record) + '\n', kPath).finished.size(), 1U);
  const JournalText read = parse_journal(mine.line + '\n' + line_of(other.checksum, 1, record) + '\n', kPath);
  EXPECT_TRUE(read.finished.empty());
  ASSERT_EQ(read.notes.size(), 1U);
  EXPECT_NE(read.notes[0].find("out/results.jsonl:2: damaged and ignored; its case runs again (its checksum does not "
                               "match)"),
            std::string::npos)
      << read.notes[0];
}

/// The note about a line with a correct checksum, as a deliberate forger can write it.
std::string note_about(std::int64_t k, const json& record) {
  const JournalHead head = journal_head({{"plan digest", "1"}});
  const JournalText read = parse_journal(head.line + '\n' + line_of(head.checksum, k, record) + '\n', kPath);
  EXPECT_TRUE(read.finished.empty()) << record.dump().substr(0, 200);
  return read.notes.empty() ? "" : read.notes.front();
}

TEST(JournalText, a_record_under_another_cases_name_is_refused) {
  EXPECT_NE(note_about(2, record_of(1, "pass")).find("its record belongs to another case"), std::string::npos);
  json renamed = record_of(1, "pass");
  renamed["id"] = "gemm/other";
  EXPECT_NE(note_about(1, renamed).find("its record belongs to another case"), std::string::npos);
}

TEST(JournalText, a_record_without_what_a_report_reads_is_refused_at_once) {
  json record = record_of(1, "pass");
  record.erase("reason");
  EXPECT_NE(note_about(1, record).find("(reason is missing)"), std::string::npos) << note_about(1, record);
  record = record_of(1, "pass");
  record["status"] = "splendid";
  EXPECT_NE(note_about(1, record).find("(status has an invalid value)"), std::string::npos) << note_about(1, record);
  record = record_of(1, "pass");
  record["runs"] = json::array({1});
  EXPECT_NE(note_about(1, record).find("(runs/0 is not of type object)"), std::string::npos) << note_about(1, record);
}

/// Every record with one member missing, or with a value of another type in its place, at any depth.
void without_each(const json& whole, json::json_pointer at, std::vector<json>& broken) {
  const json& here = whole.at(at);
  if (!here.is_structured()) {
    return;
  }
  for (const auto& [key, value] : here.items()) {
    json changed = whole;
    if (here.is_object()) {
      changed.at(at).erase(key);
      broken.push_back(changed);
    }
    changed = whole;
    const json::json_pointer member = here.is_object() ? at / key : at / static_cast<std::size_t>(std::stoull(key));
    changed.at(member) = json::array({json::array()});
    broken.push_back(changed);
    without_each(whole, member, broken);
  }
}

TEST(JournalText, the_shape_of_a_record_is_checked_at_every_depth) {
  const plan::Case c = report::testing::sample_case("fp32", 64);
  const json whole = report::to_json(report::testing::sample_result(c, {{}}));
  ASSERT_EQ(report::record_error(whole), "");
  std::vector<json> broken;
  without_each(whole, json::json_pointer(), broken);
  ASSERT_GT(broken.size(), 100U);
  std::set<std::string> accepted;  // members that are optional or may have any type
  for (const json& record : broken) {
    if (report::record_error(record).empty()) {
      for (const json& difference : json::diff(whole, record)) {
        accepted.insert(difference.at("path"));
      }
    }
  }
  for (const std::string& path : accepted) {
    EXPECT_TRUE(path.starts_with("/inputs/") || path.starts_with("/params/") || path.starts_with("/tolerance/") ||
                path.starts_with("/environment/") || path.starts_with("/runs/0/details/") ||
                path.starts_with("/runs/0/outputs/d/opinions/") || path == "/runs/0/outputs/d" || path == "/algorithms")
        << path;
  }
}

TEST(JournalText, depth_is_limited) {
  const JournalHead head = journal_head({{"plan digest", "1"}});
  json deep;
  for (int i = 0; i < 100; ++i) {
    deep = json::array({std::move(deep)});
  }
  json record = record_of(1, "pass");
  record["inputs"]["deep"] = std::move(deep);
  EXPECT_NE(note_about(1, record).find("nests deeper than 64"), std::string::npos);
  const std::string brackets(100'000, '[');
  EXPECT_EQ(parse_journal(head.line + '\n' + brackets + '\n', kPath).notes.size(), 1U);
  EXPECT_THROW((void)parse_journal(brackets + '\n', kPath), core::IoError);
  EXPECT_THROW((void)parse_journal(R"({"journal":"te-numcheck/results","version":1,"facts":)" + brackets + '\n', kPath),
               core::IoError);
}

TEST(JournalText, thousands_of_bad_lines_are_counted) {
  std::string text = journal_head({{"plan digest", "1"}}).line + '\n';
  for (int i = 0; i < 5000; ++i) {
    text += "junk\n";
  }
  const JournalText read = parse_journal(text, kPath);
  ASSERT_EQ(read.notes.size(), 21U);
  EXPECT_EQ(read.notes.back(), "out/results.jsonl: and 4980 more lines like these");
}

TEST(JournalText, a_damaged_first_line_says_so) {
  std::vector<std::string> lines = sample_lines();
  lines[0].replace(lines[0].find("0/1"), 3, "1/2");
  try {
    (void)parse_journal(joined(lines), kPath);
    FAIL() << "a changed header was taken";
  } catch (const core::IoError& error) {
    EXPECT_NE(std::string(error.what()).find("damaged first line"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace numcheck::run
