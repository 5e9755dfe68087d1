// Lines of a journal that somebody or something changed: none may change a result without a word.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "report/record_shape.hpp"
#include "report/sample_record.hpp"
#include "run/journal_text.hpp"

namespace numcheck::run {
namespace {

using nlohmann::json;
using Random = std::mt19937_64;

const std::string kPath = "out/results.jsonl";

json record_of(std::int64_t k, const std::string& status) {
  const plan::Case c = report::testing::sample_case("fp32", k);
  report::CaseResult result = report::testing::sample_result(c, {});
  json record = to_json(result);
  record["status"] = status;
  return record;
}

core::Digest digest_of_case(std::int64_t k) {
  return report::testing::sample_case("fp32", k).digest;
}

std::string line_of(std::string_view head, std::int64_t k, const json& record) {
  return journal_line(head, digest_of_case(k), report::testing::sample_case("fp32", k).id, record);
}

/// A journal as a run writes it: cases with and without a device's results, one that ran twice, one that crashed.
std::vector<std::string> sample_lines() {
  const JournalHead head = journal_head({{"plan digest", "1"}, {"shard", "0/1"}});
  const plan::Case whole = report::testing::sample_case("fp32", 64);
  const json full = to_json(report::testing::sample_result(whole, {{}}));
  return {head.line,
          line_of(head.checksum, 1, record_of(1, "unsupported")),
          journal_line(head.checksum, whole.digest, whole.id, full),
          line_of(head.checksum, 2, record_of(2, "crashed")),
          line_of(head.checksum, 3, record_of(3, "error")),
          line_of(head.checksum, 2, record_of(2, "fail")),
          line_of(head.checksum, 4, record_of(4, "pass"))};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + '\n';
  }
  return text;
}

/// What a line of the sample stands for.
struct Known {
  core::Digest digest;
  std::string record;
  bool has_verdict = false;
};
using KnownLines = std::map<std::string, Known, std::less<>>;

KnownLines known_lines() {
  KnownLines known;
  const std::vector<std::string> lines = sample_lines();
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const json object = json::parse(lines[i]);
    const std::string hex = object.at("digest");
    const std::string status = object.at("record").at("status");
    known[lines[i]] = {{std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16), nullptr, 16)},
                       object.at("record").dump(),
                       status != "crashed" && status != "error"};
  }
  return known;
}

/// What must come back of a text: of every case the last intact line, and nothing else.
std::map<core::Digest, std::string> expected_of(std::string_view text, const KnownLines& known) {
  std::map<core::Digest, std::string> expected;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (const auto line = known.find(text.substr(0, end)); line != known.end()) {
      expected.erase(line->second.digest);
      if (line->second.has_verdict) {
        expected[line->second.digest] = line->second.record;
      }
    }
    text.remove_prefix(end + 1);
  }
  return expected;
}

std::size_t below(Random& random, std::size_t bound) {
  return bound == 0 ? 0 : static_cast<std::size_t>(random() % bound);
}

/// A change of bytes, wherever they are.
void change_bytes(std::string& text, Random& random) {
  const std::size_t at = below(random, text.size());
  const std::size_t length = 1 + below(random, 1 + below(random, 64));
  switch (below(random, 4)) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ static_cast<char>(1U << below(random, 8)));
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(below(random, text.size()), length));
      break;
    default:
      text.resize(at);
      break;
  }
}

/// A change of whole lines, or of a member that goes from one line to another.
void change_lines(std::vector<std::string>& lines, Random& random) {
  const std::size_t one = below(random, lines.size());
  const std::size_t other = below(random, lines.size());
  switch (below(random, 5)) {
    case 0:
      std::swap(lines[one], lines[other]);
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(one), lines[other]);
      break;
    case 2:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(one));
      break;
    case 3:
      lines[one].resize(below(random, lines[one].size()));
      break;
    default: {
      json left = json::parse(lines[one], nullptr, false);
      json right = json::parse(lines[other], nullptr, false);
      static const std::vector<std::string> kMembers = {"xxh128", "digest", "id", "record"};
      const std::string& member = kMembers[below(random, kMembers.size())];
      if (left.contains(member) && right.contains(member)) {
        std::swap(left[member], right[member]);
        // As a journal writes it: the checksum comes first.
        for (auto [line, object] : {std::pair(&lines[one], &left), std::pair(&lines[other], &right)}) {
          const std::string seal = object->at("xxh128").dump();
          object->erase("xxh128");
          *line = "{\"xxh128\":" + seal + "," + object->dump().substr(1);
        }
      }
    }
  }
}

std::size_t mutations() {
  const char* wanted = std::getenv("TE_NUMCHECK_MUTATIONS");
  return wanted == nullptr ? 50'000 : std::stoull(wanted);
}

TEST(JournalText, NoMutationChangesAResultWithoutAWord) {
  const KnownLines known = known_lines();
  const std::vector<std::string> original = sample_lines();
  Random random(11);
  std::size_t refused = 0, noted = 0;
  for (std::size_t i = 0; i < mutations(); ++i) {
    std::vector<std::string> lines = original;
    if (below(random, 2) == 0) {
      change_lines(lines, random);
    }
    std::string text = joined(lines);
    for (std::size_t changes = below(random, 3) + (text == joined(original) ? 1 : 0); changes > 0; --changes) {
      change_bytes(text, random);
    }
    const bool head_is_intact = text.starts_with(original[0] + '\n');
    try {
      const JournalText read = parse_journal(text, kPath);
      ASSERT_TRUE(head_is_intact) << "mutation " << i << " of the first line was not seen";
      std::map<core::Digest, std::string> got;
      for (const JournalEntry& entry : read.finished) {
        ASSERT_TRUE(got.emplace(entry.digest, entry.record).second) << i;
        ASSERT_EQ(json::parse(entry.record).at("id"), entry.id) << i;
      }
      ASSERT_EQ(got, expected_of(text, known)) << "mutation " << i;
      noted += read.notes.empty() ? 0 : 1;
    } catch (const core::Error&) {
      ASSERT_FALSE(head_is_intact) << "mutation " << i << " lost intact lines";
      ++refused;
    }
  }
  // Had the mutations missed their aim, none of this would have been tested.
  EXPECT_GT(refused, mutations() / 20);
  EXPECT_GT(noted, mutations() / 4);
}

TEST(JournalText, ALineOfAnotherJournalIsNoLineOfThisOne) {
  const JournalHead mine = journal_head({{"plan digest", "1"}});
  const JournalHead other = journal_head({{"plan digest", "2"}});
  const json record = record_of(1, "pass");
  EXPECT_EQ(parse_journal(mine.line + '\n' + line_of(mine.checksum, 1, record) + '\n', kPath).finished.size(), 1U);
  const JournalText read = parse_journal(mine.line + '\n' + line_of(other.checksum, 1, record) + '\n', kPath);
  EXPECT_TRUE(read.finished.empty());
  ASSERT_EQ(read.notes.size(), 1U);
  EXPECT_NE(read.notes[0].find("out/results.jsonl:2: damaged and ignored, its case runs again (its checksum does not "
                               "match)"),
            std::string::npos)
      << read.notes[0];
}

/// The note about a line whose checksum is right, as only somebody who computes it can write.
std::string note_about(std::int64_t k, const json& record) {
  const JournalHead head = journal_head({{"plan digest", "1"}});
  const JournalText read = parse_journal(head.line + '\n' + line_of(head.checksum, k, record) + '\n', kPath);
  EXPECT_TRUE(read.finished.empty()) << record.dump().substr(0, 200);
  return read.notes.empty() ? "" : read.notes.front();
}

TEST(JournalText, ARecordUnderAnotherCasesNameIsRefused) {
  EXPECT_NE(note_about(2, record_of(1, "pass")).find("its record is that of another case"), std::string::npos);
  json renamed = record_of(1, "pass");
  renamed["id"] = "gemm/other";
  EXPECT_NE(note_about(1, renamed).find("its record is that of another case"), std::string::npos);
}

TEST(JournalText, ARecordWithoutWhatAReportReadsIsRefusedAtOnce) {
  json record = record_of(1, "pass");
  record.erase("reason");
  EXPECT_NE(note_about(1, record).find("(reason is missing)"), std::string::npos) << note_about(1, record);
  record = record_of(1, "pass");
  record["status"] = "splendid";
  EXPECT_NE(note_about(1, record).find("(status has no legal value)"), std::string::npos) << note_about(1, record);
  record = record_of(1, "pass");
  record["runs"] = json::array({1});
  EXPECT_NE(note_about(1, record).find("(runs/0 is no object)"), std::string::npos) << note_about(1, record);
}

/// Every record that lacks one member, or has another kind of value in its place, at any depth.
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

TEST(JournalText, TheShapeOfARecordIsCheckedAtEveryDepth) {
  const plan::Case c = report::testing::sample_case("fp32", 64);
  const json whole = to_json(report::testing::sample_result(c, {{}}));
  ASSERT_EQ(report::record_mistake(whole), "");
  std::vector<json> broken;
  without_each(whole, json::json_pointer(), broken);
  ASSERT_GT(broken.size(), 100U);
  std::set<std::string> accepted;  // what a report may lack or have as it likes
  for (const json& record : broken) {
    if (report::record_mistake(record).empty()) {
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

TEST(JournalText, DepthIsLimited) {
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

TEST(JournalText, ThousandsOfBadLinesAreCounted) {
  std::string text = journal_head({{"plan digest", "1"}}).line + '\n';
  for (int i = 0; i < 5000; ++i) {
    text += "junk\n";
  }
  const JournalText read = parse_journal(text, kPath);
  ASSERT_EQ(read.notes.size(), 21U);
  EXPECT_EQ(read.notes.back(), "out/results.jsonl: and 4980 more lines like these");
}

TEST(JournalText, ADamagedFirstLineSaysSo) {
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
