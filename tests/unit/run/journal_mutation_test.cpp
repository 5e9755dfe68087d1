// Changes of every kind to a journal: none may change a result silently, and no intact line may be lost.
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "journal_sample.hpp"
#include "run/journal_text.hpp"

namespace numcheck::run {
namespace {

using nlohmann::json;
using namespace test;
using Random = std::mt19937_64;

const std::string kPath = "out/results.jsonl";

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

/// What must be read back from a text: the last intact line of every case, and nothing else.
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

/// Changes bytes anywhere.
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

/// Changes whole lines, or moves a member from one line to another.
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

TEST(JournalText, no_mutation_changes_a_result_silently) {
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
  // Otherwise the mutations missed their targets and tested nothing.
  EXPECT_GT(refused, mutations() / 20);
  EXPECT_GT(noted, mutations() / 4);
}

}  // namespace
}  // namespace numcheck::run
