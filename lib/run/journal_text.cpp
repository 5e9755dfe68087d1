#include "run/journal_text.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json_depth.hpp"
#include "report/record_shape.hpp"
#include "worker/json_fields.hpp"

namespace numcheck::run {
namespace {

using nlohmann::json;

constexpr const char* kName = "te-numcheck/results";
constexpr std::string_view kBefore = R"({"xxh128":")";  // the checksum
constexpr std::string_view kAfter = R"(",)";
constexpr std::size_t kDigits = 32;
constexpr std::size_t kMaxNotes = 20;
constexpr std::array<std::string_view, 7> kVerdictStatuses{"pass",        "warn",  "fail", "inconclusive",
                                                           "unsupported", "xfail", "xpass"};

/// `seed` is the header's checksum, so that lines from another journal do not match.
std::string checksum_of(std::string_view seed, std::string_view rest) {
  return core::digest_of(fmt::format("{}{}", seed, rest)).hex();
}

struct SealedLine {
  std::string line;
  std::string checksum;
};

/// {"xxh128":"CHECKSUM",REST where {REST is the object's JSON.
SealedLine seal(std::string_view seed, const json& object) {
  const std::string text = worker::fields::line(object);
  const std::string_view rest = std::string_view(text).substr(1);
  std::string checksum = checksum_of(seed, rest);
  return {fmt::format("{}{}{}{}", kBefore, checksum, kAfter, rest), std::move(checksum)};
}

bool has_seal(std::string_view line) noexcept {
  return line.starts_with(kBefore) && line.substr(std::min(line.size(), kBefore.size() + kDigits)).starts_with(kAfter);
}

std::string_view checksum_in(std::string_view line) noexcept {
  return line.substr(kBefore.size(), kDigits);
}

/// The bytes that the checksum covers, besides the seed.
std::string_view text_in(std::string_view line) noexcept {
  return line.substr(kBefore.size() + kDigits + kAfter.size());
}

/// The line's object. Throws ProtocolError if the checksum does not match.
json open_sealed(std::string_view seed, std::string_view line) {
  if (!has_seal(line)) {
    throw worker::ProtocolError("it has no checksum");
  }
  if (checksum_of(seed, text_in(line)) != checksum_in(line)) {
    throw worker::ProtocolError("its checksum does not match");
  }
  return worker::fields::parse(fmt::format("{{{}", text_in(line)));
}

/// The version of a header line, with or without a checksum; nothing if it is not a header.
std::optional<int> version_of(std::string_view line) {
  try {
    const json header = worker::fields::parse(line);
    return worker::fields::text(header, "journal") == kName ? std::optional(worker::fields::small(header, "version"))
                                                            : std::nullopt;
  } catch (const worker::ProtocolError&) {
    return std::nullopt;
  }
}

/// Nothing in a damaged header can be trusted, not even its version. Version 1 had no checksum.
void require_intact_head(std::string_view line, const std::string& path) {
  if (has_seal(line) && checksum_of("", text_in(line)) != checksum_in(line)) {
    throw core::IoError(fmt::format(
        "{} has a damaged first line, so the conditions of its results are unknown; start a new run", path));
  }
}

JournalFacts read_head(std::string_view line, const std::string& path) {
  require_intact_head(line, path);
  const std::optional<int> version = version_of(line);
  if (version.has_value() && *version != kJournalVersion) {
    throw core::UsageError(
        fmt::format("cannot resume: {} has version {}, but this te-numcheck uses version {}; start a new run", path,
                    *version, kJournalVersion));
  }
  try {
    if (version.has_value()) {
      return worker::fields::member(open_sealed("", line), "facts").get<JournalFacts>();
    }
  } catch (const json::exception&) {
  } catch (const worker::ProtocolError&) {
  }
  throw core::IoError(fmt::format("{} is not a journal of te-numcheck; start a new run", path));
}

JournalEntry read_entry(std::string_view seed, std::string_view line, bool& has_verdict) {
  const json object = open_sealed(seed, line);
  const json& record = worker::fields::member(object, "record");
  if (const std::string error = report::record_error(record); !error.empty()) {
    throw worker::ProtocolError(error);
  }
  JournalEntry entry{worker::fields::digest(object, "digest"), worker::fields::text(object, "id"), record.dump()};
  if (worker::fields::digest(record, "digest") != entry.digest || worker::fields::text(record, "id") != entry.id) {
    throw worker::ProtocolError("its record belongs to another case");
  }
  has_verdict = std::ranges::find(kVerdictStatuses, worker::fields::text(record, "status")) != kVerdictStatuses.end();
  return entry;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  JournalText read(std::string_view text) {
    std::size_t number = 1;
    for (; !text.empty() || number == 1; ++number) {
      const std::size_t end = text.find('\n');
      if (end == std::string_view::npos && number > 1) {  // the process or machine died while writing it
        note(number, "the last line is incomplete and was dropped");
        break;
      }
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      if (number == 1) {
        result_.facts = read_head(end == std::string_view::npos ? std::string_view() : line, path_);
        result_.checksum = checksum_in(line);
      } else {
        add(number, line);
      }
      result_.complete_bytes += line.size() + 1;
    }
    return finish();
  }

 private:
  void add(std::size_t number, std::string_view line) {
    try {
      bool has_verdict = false;
      JournalEntry entry = read_entry(result_.checksum, line, has_verdict);
      const auto [found, is_new] = position_.emplace(entry.digest, entries_.size());
      if (is_new) {
        entries_.emplace_back();
      }
      entries_[found->second] = {std::move(entry), has_verdict};
    } catch (const worker::ProtocolError& error) {
      note(number, fmt::format("damaged and ignored; its case runs again ({})", worker::printable(error.what(), 120)));
    }
  }

  void note(std::size_t number, std::string_view text) {
    if (++note_count_ <= kMaxNotes) {
      result_.notes.push_back(fmt::format("{}:{}: {}", path_, number, text));
    }
  }

  JournalText finish() {
    if (note_count_ > kMaxNotes) {
      result_.notes.push_back(fmt::format("{}: and {} more lines like these", path_, note_count_ - kMaxNotes));
    }
    for (auto& [entry, has_verdict] : entries_) {
      (has_verdict ? result_.finished : result_.unfinished).push_back(std::move(entry));
    }
    return std::move(result_);
  }

  const std::string& path_;
  JournalText result_;
  std::map<core::Digest, std::size_t> position_;
  std::vector<std::pair<JournalEntry, bool>> entries_;  ///< and whether it has a verdict
  std::size_t note_count_ = 0;
};

}  // namespace

JournalHead journal_head(const JournalFacts& facts) {
  SealedLine sealed = seal("", {{"journal", kName}, {"version", kJournalVersion}, {"facts", facts}});
  return {std::move(sealed.line), std::move(sealed.checksum)};
}

std::string journal_line(std::string_view head_checksum, const core::Digest& digest, const std::string& id,
                         const json& record) {
  return seal(head_checksum, {{"digest", digest.hex()}, {"id", id}, {"record", record}}).line;
}

JournalText parse_journal(std::string_view text, const std::string& path) {
  return Reader(path).read(text);
}

}  // namespace numcheck::run
