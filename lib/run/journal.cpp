#include "run/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "core/error.hpp"
#include "run/json_fields.hpp"

namespace numcheck::run {
namespace {

using nlohmann::json;
using Facts = std::map<std::string, std::string>;

constexpr const char* kName = "te-numcheck/results";
constexpr int kVersion = 1;
constexpr auto kSyncInterval = std::chrono::seconds(5);
constexpr std::array<std::string_view, 7> kVerdicts{"pass",        "warn",  "fail", "inconclusive",
                                                    "unsupported", "xfail", "xpass"};

std::string reason() {
  return std::generic_category().message(errno);
}

Facts facts_of(const JournalHeader& header) {
  Facts facts{{"plan digest", header.plan_digest}, {"tool version", header.tool_version},
              {"device", header.device.name},      {"device architecture", fmt::format("sm_{}", header.device.sm)},
              {"device uuid", header.device.uuid}, {"device simulated", header.device.simulated ? "yes" : "no"},
              {"driver", header.device.driver},    {"shard", header.shard}};
  for (const auto& [name, version] : header.libraries) {
    facts["library " + name] = version;
  }
  for (const machine::VariableState& variable : header.environment) {
    facts["environment variable " + variable.name] = variable.value ? "=" + *variable.value : "unset";
  }
  for (const auto& [name, value] : header.settings) {
    facts["option " + name] = value;
  }
  return facts;
}

/// One sentence per fact that differs.
std::vector<std::string> differences(const Facts& there, const Facts& here) {
  Facts all = there;
  all.insert(here.begin(), here.end());
  std::vector<std::string> result;
  for (const auto& [name, ignored] : all) {
    const auto old_value = there.find(name);
    const auto new_value = here.find(name);
    const std::string old_text = old_value == there.end() ? "not recorded" : '"' + old_value->second + '"';
    const std::string new_text = new_value == here.end() ? "not known" : '"' + new_value->second + '"';
    if (old_text != new_text) {
      result.push_back(fmt::format("{}: {} there, {} now", name, old_text, new_text));
    }
  }
  return result;
}

Facts read_header(const std::string& path, const std::string& line) {
  try {
    const json header = json::parse(line);
    if (fields::text(header, "journal") == kName) {
      if (const int version = fields::small(header, "version"); version != kVersion) {
        throw core::UsageError(fmt::format(
            "cannot resume: {} has version {}, this te-numcheck writes {}; start a new run", path, version, kVersion));
      }
      return fields::member(header, "facts").get<Facts>();
    }
  } catch (const json::exception&) {
  } catch (const ProtocolError&) {
  }
  throw core::IoError(fmt::format("{} does not begin as a journal of te-numcheck; start a new run", path));
}

JournalEntry read_entry(const std::string& line, bool& has_verdict) {
  const json object = json::parse(line);
  const json& record = fields::member(object, "record");
  const std::string& status = fields::text(record, "status");
  has_verdict = std::find(kVerdicts.begin(), kVerdicts.end(), status) != kVerdicts.end();
  return {fields::digest(object, "digest"), fields::text(object, "id"), record.dump()};
}

struct Contents {
  Facts facts;
  std::vector<JournalEntry> finished;
  std::vector<std::string> notes;
  std::uint64_t whole_bytes = 0;  ///< up to the end of the last whole line
};

Contents read_journal(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Contents contents;
  std::map<core::Digest, std::size_t> position;
  std::vector<std::optional<JournalEntry>> entries;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (file.eof()) {  // no line end: the process or the machine died while it wrote this
      contents.notes.push_back(fmt::format("{}:{}: the last line is torn and was dropped", path, number));
      break;
    }
    contents.whole_bytes += line.size() + 1;
    if (number == 1) {
      contents.facts = read_header(path, line);
      continue;
    }
    try {
      bool has_verdict = false;
      JournalEntry entry = read_entry(line, has_verdict);
      const auto [found, is_new] = position.emplace(entry.digest, entries.size());
      if (is_new) {
        entries.emplace_back();
      }
      entries[found->second] = has_verdict ? std::optional(std::move(entry)) : std::nullopt;
    } catch (const std::exception& error) {
      contents.notes.push_back(fmt::format("{}:{}: damaged and ignored, its case runs again ({})", path, number,
                                           printable(error.what(), 120)));
    }
  }
  if (contents.whole_bytes == 0) {
    read_header(path, "");
  }
  for (std::optional<JournalEntry>& entry : entries) {
    if (entry) {
      contents.finished.push_back(std::move(*entry));
    }
  }
  return contents;
}

std::string path_in(const std::string& folder) {
  return folder + "/results.jsonl";
}

}  // namespace

Journal::Journal(std::string path, FileDescriptor file, std::uint64_t size, std::uint64_t cases)
    : path_(std::move(path)),
      file_(std::move(file)),
      size_(size),
      cases_(cases),
      synced_(std::chrono::steady_clock::now()) {}

Journal::~Journal() {
  if (file_.valid()) {
    ::fdatasync(file_.get());
  }
}

void Journal::lock() {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw core::UsageError(fmt::format("{} is in use: another te-numcheck is writing to it", path_));
  }
}

Journal Journal::create(const std::string& folder, const JournalHeader& header) {
  const std::string path = path_in(folder);
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid() && errno == EEXIST) {
    throw core::UsageError(
        fmt::format("{} exists: continue that run with --resume {}, or choose another folder", path, folder));
  }
  if (!file.valid()) {
    throw core::IoError(fmt::format("cannot create {}: {}", path, reason()));
  }
  Journal journal(path, std::move(file), 0, 0);
  journal.lock();
  journal.write_line(fields::line({{"journal", kName}, {"version", kVersion}, {"facts", facts_of(header)}}));
  ::fdatasync(journal.file_.get());
  return journal;
}

ResumedJournal Journal::open_for_resume(const std::string& folder, const JournalHeader& header) {
  const std::string path = path_in(folder);
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR)) {
    throw core::UsageError(
        fmt::format("cannot resume: there is no {}; name the folder that an earlier run made", path));
  }
  if (!file.valid()) {
    throw core::IoError(fmt::format("cannot open {}: {}", path, reason()));
  }
  Journal journal(path, std::move(file), 0, 0);
  journal.lock();
  Contents contents = read_journal(path);
  const std::vector<std::string> different = differences(contents.facts, facts_of(header));
  if (!different.empty()) {
    throw core::UsageError(
        fmt::format("cannot resume {}: its results were made under other conditions\n  {}\n"
                    "start a new run, or restore these conditions",
                    folder, fmt::join(different, "\n  ")));
  }
  if (::ftruncate(journal.file_.get(), static_cast<off_t>(contents.whole_bytes)) != 0) {
    throw core::IoError(fmt::format("cannot cut the torn last line off {}: {}", path, reason()));
  }
  journal.size_ = contents.whole_bytes;
  journal.cases_ = contents.finished.size();
  return {std::move(journal), std::move(contents.finished), std::move(contents.notes)};
}

void Journal::append(const core::Digest& digest, const std::string& id, const json& record) {
  write_line(fields::line({{"digest", digest.hex()}, {"id", id}, {"record", record}}));
  ++cases_;
  const auto now = std::chrono::steady_clock::now();
  if (now - synced_ >= kSyncInterval) {
    ::fdatasync(file_.get());
    synced_ = now;
  }
}

void Journal::write_line(const std::string& line) {
  const std::string text = line + '\n';
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t step = ::write(file_.get(), text.data() + written, text.size() - written);
    if (step < 0 && errno == EINTR) {
      continue;
    }
    if (step < 0) {
      const std::string why = reason();
      const bool clean = ::ftruncate(file_.get(), static_cast<off_t>(size_)) == 0;
      throw core::IoError(fmt::format("cannot write {}: {}; the {} cases before are kept{}, continue with --resume",
                                      path_, why, cases_, clean ? "" : " (the last line is torn)"));
    }
    written += static_cast<std::size_t>(step);
  }
  size_ += text.size();
}

}  // namespace numcheck::run
