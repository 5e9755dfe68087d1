// Reports read case by case: the same as parse_report reads, and the same words for what it refuses.
#include "report/stored_report.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "report/case_ranges.hpp"
#include "report/parse_report.hpp"
#include "report/report.hpp"
#include "report/report_text.hpp"
#include "sample_record.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxBytes = 1 << 24;

void keep_all(json& /*record*/) {}

json sample_report(std::size_t cases) {
  std::vector<json> records;
  for (std::size_t i = 0; i < cases; ++i) {
    const plan::Case c = testing::sample_case("fp32", static_cast<std::int64_t>(i + 1));
    records.push_back(to_json(testing::sample_result(c, {{.measured = i == 4 ? 2.0 : 0.5}})));
    records.back()["reproduce"] = R"(run {"[\"],} )";
  }
  RunFacts facts;
  facts.plan.name = "\"cases\": [{";
  facts.plan.selected = facts.plan.expanded = cases;
  return make_report(facts, std::move(records));
}

class Stored : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    const std::string path = (folder_.path() / "report.json").string();
    core::write_file(path, text);
    return path;
  }
  /// Both ways of reading give the same report or the same complaint, which is returned.
  std::string complaint(const std::string& text) {
    const std::string path = write(text);
    std::string whole, stored;
    json expected, got;
    try {
      expected = parse_report(text, path);
    } catch (const core::IoError& error) {
      whole = error.what();
    }
    try {
      got = StoredReport(path, kMaxBytes).read(&keep_all);
    } catch (const core::IoError& error) {
      stored = error.what();
    }
    EXPECT_EQ(stored, whole) << text.substr(0, 200);
    EXPECT_EQ(got, expected);
    return stored;
  }
  std::string complaint(const json& report) { return complaint(report_text(report)); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(Stored, is_read_like_any_report_however_it_is_laid_out) {
  for (const std::size_t cases : {0U, 1U, 2U, 200U}) {
    const json report = sample_report(cases);
    EXPECT_EQ(complaint(report), "");
    EXPECT_EQ(complaint(report.dump()), "");
    EXPECT_EQ(complaint(report.dump(7, '\t')), "");
  }
}

TEST_F(Stored, records_are_those_of_the_file) {
  const json report = sample_report(9);
  const StoredReport stored(write(report_text(report)), kMaxBytes);
  ASSERT_EQ(stored.size(), 9U);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(stored.record(i), report["cases"][i]);
  }
}

TEST_F(Stored, what_is_wrong_is_told_in_the_same_words) {
  const json report = sample_report(3);
  const auto changed = [&report](const auto& change) {
    json copy = report;
    change(copy);
    return copy;
  };
  for (const char* text :
       {"", "{}", "[]", "{\"cases\": [", "{\"cases\": 3}", "\"cases\": [{}]", "{\"cases\": [{},]}"}) {
    EXPECT_NE(complaint(std::string(text)), "") << text;
  }
  const std::string text = report.dump();
  for (const std::size_t size : {text.size() - 1, text.size() / 2, text.size() / 3}) {
    EXPECT_NE(complaint(text.substr(0, size)), "");
  }
  for (const char* broken : {"{\"a\": }", "{} {}", "{},,{}", ",{}", "{} 3", "[{}]", "{\"a\": 1]"}) {
    std::string damaged = changed([](json& r) { r["cases"] = json::array(); }).dump();
    damaged.insert(damaged.find("\"cases\":[") + 9, broken);
    EXPECT_NE(complaint(damaged), "") << broken;
  }
  EXPECT_NE(complaint(changed([](json& r) { r["schema_version"] = "2.0.0"; })), "");
  EXPECT_NE(complaint(changed([](json& r) { r["cases"][1].erase("digest"); })), "");
  EXPECT_NE(complaint(changed([](json& r) { r["cases"][1]["runs"] = 3; })), "");
  EXPECT_NE(complaint(changed([](json& r) {
              r["plan"] = 3;
              r["cases"][1]["runs"] = 3;
            })),
            "");
  EXPECT_NE(complaint(changed([](json& r) { r["cases"][2]["status"] = "error"; })), "");
  EXPECT_NE(complaint(std::string(100, '[')), "");
}

TEST_F(Stored, a_file_that_changes_is_told) {
  const std::string path = write(report_text(sample_report(3)));
  const StoredReport stored(path, kMaxBytes);
  std::filesystem::resize_file(path, 100);
  EXPECT_THROW((void)stored.record(2), core::IoError);
}

TEST(CaseRanges, do_not_depend_on_how_the_text_comes) {
  const std::string text = report_text(sample_report(3));
  CaseRanges whole;
  whole.take(text);
  ASSERT_TRUE(whole.sound());
  ASSERT_EQ(whole.cases().size(), 3U);
  for (const std::size_t size : {1U, 2U, 3U, 7U, 1000U}) {
    CaseRanges pieces;
    for (std::size_t at = 0; at < text.size(); at += size) {
      pieces.take(std::string_view(text).substr(at, size));
    }
    EXPECT_EQ(pieces.head(), whole.head());
    ASSERT_EQ(pieces.cases().size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(pieces.cases()[i].begin, whole.cases()[i].begin);
      EXPECT_EQ(pieces.cases()[i].end, whole.cases()[i].end);
    }
  }
}

}  // namespace
}  // namespace numcheck::report
